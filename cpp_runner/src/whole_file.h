// A file that appears whole: it is written beside its goal under a name that nobody can guess, brought to disk, and moved
// to its place at the end.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace compgen {

// What a path names, through links, which need not be there yet; its folder is made. Throws UserError if it cannot be.
std::filesystem::path resolved(const std::string& path);
// Whether what is written goes through a path and takes the place of nothing: standard output, a device or a pipe.
bool is_stream(const std::string& path);
// Moves a finished file to its place, with the permissions of what it takes the place of. Throws UserError.
void take_place(const std::filesystem::path& made, const std::filesystem::path& place);
// Writes all bytes, where a signal or a slow reader cuts writing short, too; false, with errno: that cannot be done.
bool write_all(int descriptor, std::string_view bytes);
// Waits until what was written is on disk; false, with errno: it cannot be.
bool on_disk(int descriptor);
// Throws UserError unless a file can be made where `path` is to be.
void check_writable(const std::string& path);
// Throws UserError if what will be written is the file that is read, by whatever name: `check_apart` in compgen/files.py.
void check_apart(const std::string& out, const std::string& read);

// `-` is standard output; that, a device and a pipe are written through. What a link names is written, not the link.
class WholeFile {
 public:
  // Throws UserError unless a file can be made there, Interrupted if a signal comes while a pipe waits for its reader.
  explicit WholeFile(const std::string& path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  // Both throw UserError when nothing more can be written, on a full disk for instance.
  void write(std::string_view bytes);
  void finish();

  // Its name until it is finished; empty of what is written through.
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  // Whether it takes the place of what is there: not so of standard output, a device or a pipe.
  bool is_file() const { return !temporary_.empty(); }
  void flush();
  [[noreturn]] void fail() const;

  std::string path_;
  std::filesystem::path goal_, temporary_;  // empty: standard output has no goal, and a stream is written as it is
  int descriptor_;
  bool terminal_ = false;  // people see each line as it comes
  std::string pending_;    // C's streams lose what they hold when a signal cuts their writing short
};

}  // namespace compgen
