// libFuzzer's functions: `fuzz READER [options of libFuzzer] [folders of inputs]`.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mutators.h"
#include "readers.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

const compgen::fuzz::Reader* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const std::string name = *count > 1 ? (*arguments)[1] : "";
  for (const auto& reader : compgen::fuzz::readers()) {
    if (reader.name == name) chosen = &reader;
  }
  if (!chosen) {
    std::fprintf(stderr, "expected a reader:");
    for (const auto& reader : compgen::fuzz::readers()) std::fprintf(stderr, " %s", reader.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  std::memmove(*arguments + 1, *arguments + 2, sizeof(char*) * static_cast<std::size_t>(*count - 1));
  --*count;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  compgen::fuzz::verdict(*chosen, {reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string found = seed % 16 ? compgen::fuzz::changed(chosen->name, input, seed, LLVMFuzzerMutate) : "";
  if (found.empty() || found.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, found.data(), found.size());
  return found.size();
}
