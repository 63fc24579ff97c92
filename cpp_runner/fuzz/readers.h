// The readers of what comes from strangers, each as a function of bytes. It refuses them by UserError or takes them;
// all else is a fault: another exception, a sanitizer's report, an answer that is not what it must be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace compgen::fuzz {

struct Reader {
  const char* name;
  void (*read)(const std::string& input);  // throws UserError
};

// All of this program.
const std::vector<Reader>& readers();

// What a reader makes of an input: that it took it, or its message. All else is thrown, or ends the program.
std::string verdict(const Reader& reader, const std::string& input);

// What must hold of any input. Ends the program otherwise, so that no handler takes it for a refusal.
void require(bool holds, const char* what);

// The files of an input that is several: their numbers in NAMES of the reader, and contents.
using Parts = std::vector<std::pair<std::uint8_t, std::string>>;
inline Parts parts_of(const std::string& input, std::size_t names) {
  Parts parts;
  for (std::size_t at = 0; at + 5 <= input.size();) {
    std::uint32_t size = 0;
    std::memcpy(&size, input.data() + at + 1, sizeof size);
    const auto name = static_cast<std::uint8_t>(static_cast<unsigned char>(input[at]) % names);
    parts.emplace_back(name, input.substr(at + 5, size));
    at += 5 + parts.back().second.size();
  }
  return parts;
}

inline std::string whole_of(const Parts& parts) {
  std::string whole;
  for (const auto& [name, content] : parts) {
    const auto size = static_cast<std::uint32_t>(content.size());
    whole += static_cast<char>(name);
    whole.append(reinterpret_cast<const char*>(&size), sizeof size).append(content);
  }
  return whole;
}

// Files of bundles, as inputs number them. The first part of an input has these names, too.
inline constexpr const char* BUNDLE_FILES[] = {
    "manifest.json", "vocabulary.json",   "rules.txt",        "targets.cfg", "scores.safetensors", "step.onnx",
    "sampler.onnx",  "encoder.onnx",      "start.onnx",       "golden.json", "step.safetensors",   "pool.safetensors"};

// A folder of this process, in memory where that can be; it goes with the process.
const std::string& folder();
void write_file(const std::string& path, const std::string& content);

}  // namespace compgen::fuzz
