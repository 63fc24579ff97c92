// A file that appears whole: it is written beside its goal under a name that nobody can guess, brought to disk, and moved
// to its place at the end.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

namespace compgen {

// What a path names, through links, which need not be there yet; its folder is made.
std::filesystem::path resolved(const std::string& path);
// Whether what is written goes through a path and takes the place of nothing: standard output, a device or a pipe.
bool is_stream(const std::string& path);
// Moves a finished file to its place, with the permissions of what it takes the place of. Throws UserError.
void take_place(const std::filesystem::path& made, const std::filesystem::path& place);
// Throws UserError unless a file can be made where `path` is to be.
void check_writable(const std::string& path);

// `-` is standard output; that, a device and a pipe are written through. What a link names is written, not the link.
class WholeFile {
 public:
  // Throws UserError unless a file can be made there.
  explicit WholeFile(const std::string& path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  // Both throw UserError when nothing more can be written, on a full disk for instance.
  void write(const std::string& bytes);
  void finish();

  // Whether it takes the place of what is there: not so of standard output, a device or a pipe.
  bool is_file() const { return !temporary_.empty(); }

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  std::filesystem::path goal_, temporary_;  // empty: standard output has no goal, and a stream is written as it is
  std::FILE* stream_ = stdout;
};

}  // namespace compgen
