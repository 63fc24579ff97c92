// How a derivation continues (compgen/csl/choices.py, weights.py): the rule that fills a slot, and the names of its
// nonterminals in a target grammar.
//
// Tables are in the order of Python's operations, so that a number is Python's but for the last bit of an exponential.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rules.h"
#include "targets.h"

namespace compgen {

// The ways to use rules: a name for the whole, and one for each nonterminal. Ways are sorted by the former. Names are
// numbers; that of ROOT is 0.
struct Ways {
  // Those that a target grammar allows; without one, there is one name and one way for a rule.
  Ways(const Grammar& grammar, const TargetGrammar* targets);

  std::int32_t most = 0;             // the largest arity
  std::vector<std::int32_t> rule;    // (ways)
  std::vector<std::int32_t> below;   // (ways, most) the names of the nonterminals, and then -1
  std::vector<double> share;         // (ways) 1 / the number of ways with the same rule and name
  std::vector<std::int64_t> starts;  // (names + 1) where the ways of each name begin
  std::int64_t names() const { return static_cast<std::int64_t>(starts.size()) - 1; }
};

// The logarithms of what states weigh in a slot, and rules in a state: (slots, S) and (S, rules).
struct Weights {
  // From scores at a temperature; `bias` is added to the scores of rules of `biased` nonterminals or more. Throws
  // UserError: the temperature makes scores infinite.
  Weights(const Grammar& grammar, std::int64_t states, const std::vector<double>& slots,
          const std::vector<double>& rules, double temperature, double bias, std::int64_t biased);

  // The logarithm of the weight of a rule in its slot: log sum over s of exp(slots[slot, s] + rules[s, rule]).
  double of(std::int64_t slot, std::int64_t rule) const;

  std::int64_t states, count;  // S; rules
  std::vector<double> slots, rules;

 private:
  std::vector<double> slot_shares_, rule_shares_;  // exponentials: (slots, S) and (rules, S)
};

// Logarithms of weights that were computed before, a thread's own: the same rules fill the same slots in most samples.
class CachedLogs {
 public:
  explicit CachedLogs(const Weights& weights) : weights_(weights), entries_(SIZE, {-1, 0}) {}

  // As Weights::of.
  double of(std::int64_t slot, std::int64_t rule);

 private:
  static constexpr std::size_t SIZE = 1 << 13;
  const Weights& weights_;
  std::vector<std::pair<std::int64_t, double>> entries_;  // slot and rule, and the logarithm
};

// A choice among ways: of a latent state, given slot and name, and then of a way, given state and name.
class WayChoice {
 public:
  // Throws UserError: more names and states than random numbers can tell apart.
  WayChoice(const Ways& ways, const Weights& weights, const std::function<bool(std::int64_t)>& allowed);

  // Cumulative weights of states that were computed before, a thread's own.
  class Cache {
   public:
    explicit Cache(std::int64_t states);

   private:
    friend class WayChoice;
    std::int64_t states_, size_;
    std::vector<const WayChoice*> of_;
    std::vector<std::int64_t> pair_;  // slot and name
    std::vector<double> cumulative_;  // (size, S)
  };

  // A way for a slot and a name, by two numbers in [0, 1); -1 where none is allowed.
  std::int64_t draw(std::int64_t slot, std::int64_t name, double first, double second, Cache& cache) const;

 private:
  const double* cumulative(std::int64_t slot, std::int64_t name, Cache& cache) const;

  const Ways& ways_;
  const Weights& weights_;
  std::vector<double> mass_;   // (names, S) the logarithm of the sum of the weights of a name's ways in a state
  std::vector<double> edges_;  // cumulative shares of the ways of each (name, state); the k-th pair's in k .. k + 1
};

}  // namespace compgen
