// Writing samples as they come: JSON lines or tab-separated, packed if the name ends in .gz, to a file that appears whole,
// or to standard output.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gzip.h"
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

// Whether a file of samples is tab-separated and not JSON lines. Throws UserError: its name says neither.
bool writes_tsv(const std::string& out);
// Whether its name asks for gzip.
bool is_packed(const std::string& out);

// What a path names, through links, which need not be there yet; its folder is made.
std::filesystem::path resolved(const std::string& out);
// OUT.partial, beside what OUT names.
std::filesystem::path partial_path(const std::filesystem::path& resolved);
// Moves a finished file to its place, with the permissions of what it takes the place of. Throws UserError.
void take_place(const std::filesystem::path& made, const std::filesystem::path& place);
// Whether what is written goes through a path and takes the place of nothing: standard output, a device or a pipe.
bool is_stream(const std::string& out);

// Source and target of a line that `Spelling` wrote. Throws an exception for another.
std::pair<std::vector<std::string>, std::vector<std::string>> words_of(std::string_view line, bool tsv);

// A file that is written under a temporary name beside its goal, which nobody can guess, brought to disk, and moved there
// by `finish`, with the permissions of what it takes the place of. What a link names is written, not the link. `-` is
// standard output; that, a device and a pipe are written through. What a name ending in .gz has is packed.
class Output {
 public:
  explicit Output(const std::string& out);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  // Throws UserError when nothing more can be written, on a full disk for instance.
  void line(const std::string& text);
  void finish();

  // Whether a file of this name takes the place of what is there: not so of standard output, a device or a pipe.
  bool is_file() const { return !temporary_.empty(); }

 private:
  void write(const std::string& bytes);
  [[noreturn]] void fail() const;

  std::unique_ptr<Gzip> gzip_;  // null: written as it is
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

  // OUT.partial, open; empty and -1 where nothing is claimed.
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  // Whether it stays when the claim ends. By default it does if it held something when it was claimed.
  void keep(bool stays) { stays_ = stays; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool stays_ = true;
};

// Throws UserError unless a file can be made where `out` is to be.
void check_writable(const std::string& out);

}  // namespace compgen
