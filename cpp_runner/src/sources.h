// Sources that a predictor is to answer.
#pragma once

#include <string>
#include <vector>

#include "pool.h"
#include "predict.h"

namespace compgen {

constexpr std::int64_t WIDEST = 1024;  // hypotheses of a beam

// All of a file, or of standard input if it is `-`, unpacked. Throws UserError.
std::string read_all(const std::string& input);

// The first column of the lines of `name`: a source a line, tokens with spaces between them, or with `raw` their ids, among
// which may be that of unknown tokens. Throws UserError for a line without tokens, and for a token that is none of the vocabulary.
std::vector<Tokens> parse_sources(const std::string& text, const std::string& name,
                                  const std::vector<std::string>& vocabulary, bool raw = false);

// So many answers a source from a beam at least as wide; a beam of 1 is as wide as that needs. Throws UserError.
Answering answering(std::int64_t best, std::int64_t beam);

}  // namespace compgen
