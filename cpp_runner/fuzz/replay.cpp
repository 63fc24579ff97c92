// Reads inputs again, without a fuzzer: `replay FOLDER` takes FOLDER/READER/* of each reader; `replay READER FILE...` says
// what becomes of each file, a line each, for comparison with Python.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "readers.h"

namespace {

namespace fs = std::filesystem;
using compgen::fuzz::Reader;

constexpr double LONGEST = 10;  // seconds for an input; sanitizers and other work on a machine take their part

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Reads an input, in time. What is wrong is said by an exception or an abort, which ends the program.
std::string replayed(const Reader& reader, const fs::path& path) {
  const auto began = std::chrono::steady_clock::now();
  std::string found;
  try {
    found = compgen::fuzz::verdict(reader, content_of(path));
  } catch (...) {
    std::fprintf(stderr, "%s: ", path.c_str());
    throw;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  compgen::fuzz::require(seconds.count() < LONGEST, path.c_str());
  return found;
}

int all(const fs::path& folder) {
  std::size_t count = 0;
  for (const Reader& reader : compgen::fuzz::readers()) {
    if (!fs::is_directory(folder / reader.name)) continue;
    for (const auto& entry : fs::directory_iterator(folder / reader.name)) replayed(reader, entry.path()), ++count;
  }
  std::printf("%zu inputs\n", count);
  return count ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2) return all(arguments[1]);
  for (const Reader& reader : compgen::fuzz::readers()) {
    if (count < 2 || std::string(reader.name) != arguments[1]) continue;
    for (int k = 2; k < count; ++k) std::printf("%s\n", replayed(reader, arguments[k]).c_str());
    return 0;
  }
  std::fprintf(stderr, "replay FOLDER, or replay READER FILE...\n");
  return 2;
}
