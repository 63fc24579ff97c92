// Beam search over any decoder, with several hypotheses a row; see compgen/runtime/beam.py.
#pragma once

#include "predict.h"

namespace compgen {

// The best answers found for each of `rows` sources that a decoder was opened with, the best first: at most `best`, of
// `width` hypotheses. Where none ends within `max_length` tokens, it is the best live one.
std::vector<std::vector<Answer>> beam(Decoder& decoder, std::int64_t rows, std::int64_t width, std::int64_t best,
                                      std::int64_t max_length);

}  // namespace compgen
