// The arithmetic of mixtures, most of the time that they take beside the look-ups.
#pragma once

#include <cstddef>
#include <vector>

#include "models.h"

namespace compgen {

constexpr std::size_t MAX_ORDER = 9;  // words of the longest n-grams, as in CMakeLists.txt
constexpr double LN10 = 2.302585092994045684;

// Sets `sums` to the probabilities of tokens by the scores of models, and `losses` to -ln of them. `weights` has one row,
// or MAX_ORDER, for the words of history that the first model knows. What is too small for a number is no right one.
void mix(const std::vector<std::vector<double>>& weights, const std::vector<Scores>& scores, std::vector<double>& sums,
         std::vector<double>& losses);

}  // namespace compgen
