// What a predictor answers; see compgen/runtime/predict.py.
#pragma once

#include <functional>
#include <vector>

#include "decoder.h"

namespace compgen {

struct Answer {
  Tokens target;          // without the end symbol
  bool finished = false;  // false when the length limit came first
  double log_prob = 0;    // with the end symbol
};

// Writes what is given to each row, whatever its probability, and then the most probable token at each step, in so many
// steps; a row leaves with its end symbol, given or not. The target is what was not given, the log-probability that of all.
std::vector<Answer> write(Decoder& decoder, const std::vector<Tokens>& given, std::int64_t max_length);

// How sources are answered: so many together in each thread, by beam search of a width, of which 1 is greedy decoding,
// with so many answers each.
struct Answering {
  std::int64_t slots = 0, beam = 1, best = 1;
  int workers = 1;
};

// The answers to each of the sources of token ids, without start or end symbols, the best first. Sources of like length
// share a batch.
std::vector<std::vector<Answer>> answers(const Bundle& bundle, Predictor& predictor, const std::vector<Tokens>& sources,
                                         const Answering& how);

using Answers = std::vector<std::vector<Answer>>;
using Ask = std::function<Answers(const std::vector<Tokens>&)>;

// The answers that `ask` has to the sources with tokens. There are none to those without, which are lines of nothing.
Answers answers_to_those_with_tokens(const std::vector<Tokens>& sources, const Ask& ask);

// A predictor and its bundle; both must outlive what uses it.
struct Member {
  const Bundle& bundle;
  Predictor& predictor;
};

// The answers of several predictors together, which know the same tokens: each proposes its best, and the mean of their
// log-probabilities ranks what was proposed; see compgen/trained/committee.py.
std::vector<std::vector<Answer>> answers_together(const std::vector<Member>& members, const std::vector<Tokens>& sources,
                                                  const Answering& how);

}  // namespace compgen
