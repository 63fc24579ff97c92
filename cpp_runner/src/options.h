// What is asked for on the command line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "selection.h"

namespace compgen {

struct Options {
  std::string bundle, input, out = "-", step;
  std::string model;  // what the record calls the bundle; empty: by its path
  std::optional<std::string> temperature;
  std::vector<std::string> given;  // names of options
  bool raw = false, verify = false, direct = false, trust_code = false, resume = false;
  std::vector<std::string> filters;
  std::optional<std::int64_t> count, draws, beam;
  std::optional<std::string> novelty, prototypes;
  std::optional<double> rarity;
  std::optional<std::size_t> ngram;
  std::vector<std::string> rare_tokens;
  std::vector<std::string> others;  // predictors that answer together with the bundle
  std::optional<std::string> otherwise;  // the predictor for sources without an answer of the bundle's
  FilterOptions filter;
  std::vector<std::string> filter_names;  // of `filters`, one by one
  Choice choice;
  Sampling sampling;

  bool gives(const std::string& name) const { return std::count(given.begin(), given.end(), name) > 0; }
};

}  // namespace compgen
