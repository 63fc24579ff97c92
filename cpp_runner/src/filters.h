// What a draw must be to be kept, and the counts of those that were not (R&R, section 4.1); see
// compgen/sampling/resampling.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sampler.h"

namespace compgen {

using Keys = std::unordered_set<std::string>;

struct FilterOptions {
  bool novel = false, unique = false, rare = false;
  std::string novelty = "both";  // both sides unseen in training, the source, or the pair
  double rarity = 0.01;          // the largest share of distinct training examples that may hold a rare n-gram
  std::size_t ngram = 1;
  Tokens rare_tokens;  // if there are any, rare is what holds one of them
  std::string prototypes = "all";  // or only tuples of which one is rare
  bool voting = false;             // draws that are not rare are passed on to a vote, though not counted as kept
};

struct Counts {
  std::int64_t drawn = 0, kept = 0, last = 0;  // last: `drawn` at the last one kept
  std::vector<std::pair<std::string, std::int64_t>> rejected;  // by reason, in order of first appearance

  void reject(const std::string& reason);
  std::string text() const;
};

// Source and target of a sample, if it has one separator, something before it, and something after it if there are
// `targets`: else it is a sentence.
std::optional<std::pair<Tokens, Tokens>> halves(const Tokens& tokens, bool targets);

// The distinct training examples, as a generator's pool holds them.
struct Training {
  Training() = default;
  explicit Training(const Pool& pool);

  bool knows(const Tokens& source, const Tokens& target, const std::string& novelty) const;
  // n-grams (of sources or targets) that more than a share `rarity` of the examples hold.
  Keys common(std::size_t n, double rarity) const;

  bool has_targets = true;
  std::vector<std::pair<Tokens, Tokens>> examples;
  Keys sources, targets, pairs;
};

// Judges draws one after another; `unique` remembers what came before.
class Filter {
 public:
  // `targets`: whether examples have any, see `halves`.
  Filter(const FilterOptions& options, const Training& training, bool targets);

  // Sources that no sample may have, if there are such: a row that has drawn one need not go on to its target.
  const Keys* unwanted() const { return options_.novel && options_.novelty != "pair" ? &training_.sources : nullptr; }
  // Source and target of a draw that passes, or only votes; those that are not kept are counted by reason.
  std::optional<std::pair<Tokens, Tokens>> keep(const Draw& draw);
  // Throws ExhaustedError where rare tokens are asked for and no token of a vocabulary of some size is rare.
  void require_rare(std::size_t vocabulary) const;
  // What prototypes are drawn from, if not the whole pool. Throws UserError: there are none, or none is rare.
  std::optional<Pool> pool(const Pool& pool) const;
  // Takes note of an example for `unique`; whether it is new.
  bool remember(const Tokens& source, const Tokens& target);
  // Whether an example is what the filter rare asks for.
  bool is_rare(const Tokens& source, const Tokens& target) const;

  Counts counts;

 private:
  std::string reason(const Tokens& source, const Tokens& target);

  FilterOptions options_;
  const Training& training_;
  bool targets_;
  Keys common_, seen_;
};

}  // namespace compgen
