// Sources that a predictor is to answer.
#pragma once

#include <string>
#include <vector>

#include "errors.h"
#include "pool.h"
#include "predict.h"

namespace compgen {

constexpr std::int64_t WIDEST = 1024;  // hypotheses of a beam

// What an input is called in messages.
std::string named(const std::string& input);

// All of a file of sources, or of standard input if it is `-`, unpacked. Throws UserError, for other formats, too.
std::string read_all(const std::string& input);

// Whether only the first column of an input has sources, as in compgen/data/sources.py: of a file that its name says to
// be tab-separated, of a pipe whose first line is. Elsewhere a TAB is a space.
bool has_columns(const std::string& input, const std::string& text);

// How lines are read: of several columns the first; ids in place of tokens, among which may be that of unknown tokens.
struct Form {
  bool columns = false, raw = false;
  std::vector<std::string>* unknown = nullptr;  // gets tokens that are none of the vocabulary, whose ids come after it
};

// A source a line of `name`, tokens with spaces between them. A line of nothing is a source without tokens, but of ids.
// Throws UserError for a line with other columns alone, for one longer than Python takes, and for a token that is none of
// the vocabulary unless these are wanted.
std::vector<Tokens> parse_sources(const std::string& text, const std::string& name,
                                  const std::vector<std::string>& vocabulary, Form form = {});

// How many ids behind the special symbols are lent to unknown words: see `Vocabulary.lend`. No token of data has one.
std::size_t spares_of(const std::vector<std::string>& vocabulary);

UserError special_in_data(const std::string& token);

// The ids of tokens of data, as `Vocabulary.encode`. Throws UserError: one is none of the vocabulary, or a special symbol.
std::vector<std::int32_t> encoded(const std::vector<std::string>& tokens, const std::vector<std::string>& vocabulary);

// So many answers a source from a beam at least as wide; a beam of 1 is as wide as that needs. Throws UserError.
Answering answering(std::int64_t best, std::int64_t beam);

}  // namespace compgen
