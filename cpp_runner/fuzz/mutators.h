// Changes of inputs that keep their form, so that what lies behind the form is reached. They are a library of their own:
// what they do must neither count as what readers do nor take a sanitizer's time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace compgen::fuzz {

// libFuzzer's way to change bytes.
using Mutate = std::size_t (*)(std::uint8_t* data, std::size_t size, std::size_t most);

// Another input for a reader; nothing where its bytes may change as they come.
__attribute__((visibility("default"))) std::string changed(const std::string& reader, const std::string& input,
                                                           std::uint32_t seed, Mutate mutate);

}  // namespace compgen::fuzz
