// Writing samples as they come: JSON lines or tab-separated, to a file that appears whole, or to standard output.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "predict.h"
#include "selection.h"

namespace compgen {

// A draw as it was made, its tokens as ids.
std::string as_json(const Draw& draw);
// The same of an answer to a source, given by its place.
std::string as_json(std::size_t source, const Answer& answer);

// Lines with the tokens of a vocabulary, which are spelled once and then copied.
class Spelling {
 public:
  explicit Spelling(const std::vector<std::string>& vocabulary);

  std::string as_json(const Sample& sample) const;
  // An answer of a predictor; the best has rank 1.
  std::string as_json(const Tokens& source, const Answer& answer, std::size_t rank) const;
  // Throws UserError if a token holds a blank.
  std::string as_tsv(const Tokens& source, const Tokens& target) const;

 private:
  std::string pair(const Tokens& source, const Tokens& target) const;

  const std::vector<std::string>& tokens_;
  std::vector<std::string> quoted_;  // as JSON
  std::vector<bool> fits_tsv_;
};

// A file that is written under a temporary name beside its goal, which nobody can guess, brought to disk, and moved there
// by `finish`, with the permissions of what it takes the place of. What a link names is written, not the link. `-` is
// standard output; that, a device and a pipe are written through.
class Output {
 public:
  explicit Output(const std::string& out);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  // Throws UserError when nothing more can be written, on a full disk for instance.
  void line(const std::string& text);
  void finish() { finish(goal_); }
  // Moves the file to another place than its goal, which stays as it is.
  void finish(const std::filesystem::path& place);

  // Whether a file of this name takes the place of what is there: not so of standard output, a device or a pipe.
  bool is_file() const { return !temporary_.empty(); }

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path goal_, temporary_;  // empty: standard output has no goal, and a stream is written as it is
  std::FILE* stream_ = stdout;
};

// The right to write a file, which one run at a time has, this program or compgen's Python: a lock on OUT.partial, which
// ends with the process. Throws UserError if another run has it. Nothing is claimed of what is no file.
class Claim {
 public:
  explicit Claim(const std::string& out);
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim();

  // OUT.partial, where samples are kept of a run that did not come to its end; what is put there stays.
  const std::filesystem::path& keep();

 private:
  std::filesystem::path path_;  // empty: nothing is claimed
  int descriptor_ = -1;
  bool stays_ = true;
};

// Throws UserError unless a file can be made where `out` is to be.
void check_writable(const std::string& out);

}  // namespace compgen
