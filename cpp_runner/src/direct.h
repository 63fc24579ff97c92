// Direct inference: the answers of a generator's network to sources, without a predictor; see compgen/sampling/direct.py.
#pragma once

#include <vector>

#include "predict.h"

namespace compgen {

// log(exp(a) + exp(b)), as numpy.logaddexp has it.
double log_of_sum(double a, double b);

// The best answer to each of the sources of token ids: prototypes are retrieved for it, `writer` (of `open_writer`) answers
// greedily with each choice of these, and the answers are ranked by the probability of source and answer with the
// choices summed out. Throws UserError: a generator without prototypes, or with more than two.
std::vector<Tokens> direct_answers(const Bundle& bundle, Predictor& writer, const std::vector<Tokens>& sources,
                                   const Answering& how);

}  // namespace compgen
