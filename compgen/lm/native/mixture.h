// Mixtures as `cgen lm interpolate` writes them: compgen/lm/mixture.py has the definition, and the same rules.
#pragma once

#include <string>
#include <vector>

#include "models.h"

namespace compgen {

struct Mixture {
  std::vector<std::string> models;                // paths, over one vocabulary
  std::vector<std::vector<double>> weights;  // one row, or one for each number of known words of history, from 0

  // Sets `losses` to -ln p of each token, by the scores of the models.
  void losses(const std::vector<Scores>& scores, std::vector<double>& losses) const;
};

// A path as Python's pathlib writes it: without parts that are `.` or empty.
std::string tidy(const std::string& path);

// Reads a mixture, or makes one of a single model. Throws UserError: the file is missing, or a broken mixture, or
// a model of it is missing.
Mixture open_mixture(const std::string& path);

}  // namespace compgen
