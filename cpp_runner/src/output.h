// Writing samples as they come: JSON lines or tab-separated, packed if the name ends in .gz, to a file that appears whole,
// or to standard output.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gzip.h"
#include "predict.h"
#include "selection.h"
#include "whole_file.h"

namespace compgen {

// A draw as it was made, its tokens as ids.
std::string as_json(const Draw& draw);
// The same of an answer to a source, given by its place.
std::string as_json(std::size_t source, const Answer& answer);
// The same of an answer that has no probability.
std::string as_json(std::size_t source, const Tokens& answer);

// Lines with the tokens of a vocabulary, which are spelled once and then copied.
class Spelling {
 public:
  explicit Spelling(const std::vector<std::string>& vocabulary);

  std::string as_json(const Sample& sample) const;
  // A source with its answer alone, which may be empty.
  std::string as_json(const Tokens& source, const Tokens& target = {}) const { return pair(source, target) + '}'; }
  // An answer of a predictor; the best has rank 1.
  std::string as_json(const Tokens& source, const Answer& answer, std::size_t rank) const;
  // Throws UserError if a token holds a space.
  std::string as_tsv(const Tokens& source, const Tokens& target) const;

 private:
  static constexpr std::size_t SHORT = 32;

  // A token as JSON, with a comma behind it.
  struct Quoted {
    std::string text;
    std::size_t size;  // of the text; it has room for SHORT bytes
  };

  std::string pair(const Tokens& source, const Tokens& target) const;
  char* list(const Tokens& tokens, char* out) const;

  const std::vector<std::string>& tokens_;
  std::vector<Quoted> quoted_;
  std::vector<bool> fits_tsv_;
};

// Whether a file of samples is tab-separated and not JSON lines. Throws UserError: its name says neither.
bool writes_tsv(const std::string& out);
// Whether its name asks for gzip.
bool is_packed(const std::string& out);

// OUT.partial, beside what OUT names.
std::filesystem::path partial_path(const std::filesystem::path& resolved);

// Source and target of a line that `Spelling` wrote. Throws an exception for another.
std::pair<std::vector<std::string>, std::vector<std::string>> words_of(std::string_view line, bool tsv);

// A file of lines that appears whole (see WholeFile). What a name ending in .gz has is packed.
class Output {
 public:
  explicit Output(const std::string& out);

  // Throws UserError when nothing more can be written, on a full disk for instance.
  void line(const std::string& text);
  void finish();

 private:
  std::unique_ptr<Gzip> gzip_;  // null: written as it is
  WholeFile file_;
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

}  // namespace compgen
