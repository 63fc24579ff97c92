#include "mixing.h"

#include <cmath>

namespace compgen {

void mix(const std::vector<std::vector<double>>& weights, const std::vector<Scores>& scores, std::vector<double>& sums,
         std::vector<double>& losses) {
  const std::size_t tokens = scores[0].log10.size();
  std::vector<double> each(tokens);
  sums.assign(tokens, 0);
  losses.resize(tokens);
  for (std::size_t m = 0; m < scores.size(); ++m) {
    double row[MAX_ORDER];  // this model's weight in each class
    for (std::size_t c = 0; c < MAX_ORDER; ++c) row[c] = weights[weights.size() == 1 ? 0 : c][m];
    const float* const log10 = scores[m].log10.data();
    double* const p = each.data();
    for (std::size_t t = 0; t < tokens; ++t) p[t] = std::exp(LN10 * log10[t]);
    for (std::size_t t = 0; t < tokens; ++t) sums[t] += row[scores[0].known[t]] * p[t];
  }
  for (std::size_t t = 0; t < tokens; ++t) losses[t] = -std::log(sums[t]);
}

}  // namespace compgen
