// What a predictor answers: the most probable token at each step; see compgen/runtime/predict.py.
#pragma once

#include <vector>

#include "backend.h"

namespace compgen {

struct Answer {
  Tokens target;          // without the end symbol
  bool finished = false;  // false when the length limit came first
  double log_prob = 0;    // with the end symbol
};

// The answers to sources of token ids, without start or end symbols; sources of like length share a batch of `slots`.
template <class Real>
std::vector<Answer> answers(const Bundle& bundle, Backend<Real>& backend, const std::vector<Tokens>& sources,
                            std::int64_t slots, int workers);

}  // namespace compgen
