// Choosing among kept samples once all are drawn; see compgen/sampling/choice.py.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "filters.h"

namespace compgen {

// A synthesised example. `votes`, after a vote, are those for this target and all of its source.
struct Sample {
  std::int64_t index = 0;
  Tokens source, target;
  double log_prob = 0;
  std::vector<std::int64_t> prototypes;
  std::optional<std::pair<std::int64_t, std::int64_t>> votes;
};

struct Choice {
  bool vote = false;                   // one target for each source, the one drawn most often; else most probable first
  std::optional<std::int64_t> margin;  // by how many votes it must have won
  std::optional<double> support;       // the least share of samples that have each new pair of neighbouring tokens
  std::optional<std::int64_t> best;    // no more than so many, the first

  // Whether there is anything to choose, so that samples must be collected first.
  bool made() const { return vote || margin || support || best; }
  // The filters to draw with: known targets and pairs have votes like others, as have those that are not rare, so both
  // are asked of winners again.
  FilterOptions drawing(const FilterOptions& filters) const;
  // What is chosen of samples that were drawn with `drawing(filters)`.
  std::vector<Sample> of(std::vector<Sample> samples, const FilterOptions& filters, const Training& training) const;
};

}  // namespace compgen
