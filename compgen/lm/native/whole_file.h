// A file that appears whole: it is written beside its goal, and takes its place at the end.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

namespace compgen {

class WholeFile {
 public:
  // Throws UserError unless a file can be made there. A device or a pipe is written through.
  explicit WholeFile(const std::string& path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  // Both throw UserError when nothing more can be written, on a full disk for instance.
  void write(const std::string& text);
  void finish();

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path path_, goal_, temporary_;  // temporary_ is empty where the goal is written through
  std::FILE* stream_ = nullptr;
};

}  // namespace compgen
