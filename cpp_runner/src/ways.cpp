#include "ways.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "errors.h"
#include "numbers.h"
#include "text.h"

namespace compgen {
namespace {

constexpr double NOTHING = -std::numeric_limits<double>::infinity();  // the logarithm of no weight
constexpr std::int64_t MOST_PAIRS = 1 << 20;  // of names and states: random numbers have 32 bits, a double 52
constexpr std::int64_t CACHED = 1 << 17;      // numbers that a cache holds, or a power of two near it
constexpr double LEAST = 1e-250;              // a sum of products below this may have lost digits

template <class Number>
std::size_t at(Number number) {
  return static_cast<std::size_t>(number);
}

// log sum of exp of so many numbers, which `value` gives by place.
template <class Value>
double logsumexp(std::int64_t count, Value value) {
  double most = NOTHING, sum = 0;
  for (std::int64_t k = 0; k < count; ++k) most = std::max(most, value(k));
  if (most == NOTHING) return NOTHING;
  for (std::int64_t k = 0; k < count; ++k) sum += std::exp(value(k) - most);
  return most + std::log(sum);
}

// Rows of a table less the logarithm of the sum of their exponentials.
void normalise(std::vector<double>& table, std::int64_t columns) {
  for (auto row = table.begin(); row != table.end(); row += columns) {
    const double total = logsumexp(columns, [&](std::int64_t k) { return row[k]; });
    for (auto it = row; it != row + columns; ++it) *it -= total;
  }
}

// Refuses a setting that made scores infinite.
void require_finite(const std::vector<double>& scores, const std::string& setting, double value,
                    const std::string& expected) {
  if (std::all_of(scores.begin(), scores.end(), [](double score) { return std::isfinite(score); })) return;
  throw UserError(setting + " " + shortened(value) + ": found scores that it makes infinite, expected " + expected);
}

void divide(std::vector<double>& table, double temperature) {
  for (double& score : table) score /= temperature;
  require_finite(table, "temperature", temperature, "a higher one");
}

// A number for a place in a cache: a product by the golden ratio spreads neighbours, and its upper bits are well mixed.
std::size_t spread(std::uint64_t key) { return (key * 0x9E3779B97F4A7C15U) >> 32; }

}  // namespace

Ways::Ways(const Grammar& grammar, const TargetGrammar* targets) : most(grammar.most) {
  std::vector<std::pair<std::int32_t, Signature>> found;
  std::set<std::string> known;
  const auto add = [&](std::int32_t number, Signature signature) {
    known.insert(signature.begin(), signature.end());
    found.emplace_back(number, std::move(signature));
  };
  const auto checker = targets ? std::make_unique<Checker>(*targets, grammar.tokens) : nullptr;
  for (std::int32_t number = 0; number < static_cast<std::int32_t>(grammar.rules.size()); ++number) {
    const Rule& one = grammar.rules[at(number)];
    if (!checker) add(number, Signature(at(one.arity + 1), ROOT));
    else
      for (auto& signature : checker->signatures(one.target)) add(number, std::move(signature));
  }
  known.erase(ROOT);
  std::map<std::string, std::int32_t> numbers = {{ROOT, 0}};
  for (const auto& name : known) numbers.emplace(name, static_cast<std::int32_t>(numbers.size()));
  using Row = std::tuple<std::int32_t, std::int32_t, std::vector<std::int32_t>>;  // name, rule, names below
  std::vector<Row> rows;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> alike;
  for (const auto& [number, signature] : found) {
    std::vector<std::int32_t> under;
    for (std::size_t k = 1; k < signature.size(); ++k) under.push_back(numbers.at(signature[k]));
    const std::int32_t whole = numbers.at(signature[0]);
    ++alike[{whole, number}];
    rows.emplace_back(whole, number, std::move(under));
  }
  std::sort(rows.begin(), rows.end());
  starts.assign(numbers.size() + 1, 0);
  for (const auto& [whole, number, under] : rows) {
    ++starts[at(whole + 1)];
    rule.push_back(number);
    below.insert(below.end(), under.begin(), under.end());
    below.resize(rule.size() * at(most), -1);
    share.push_back(1 / static_cast<double>(alike[{whole, number}]));
  }
  for (std::size_t k = 1; k < starts.size(); ++k) starts[k] += starts[k - 1];
}

Weights::Weights(const Grammar& grammar, std::int64_t number, const std::vector<double>& slot_scores,
                 const std::vector<double>& rule_scores, double temperature, double bias, std::int64_t biased)
    : states(number), count(static_cast<std::int64_t>(grammar.rules.size())), slots(slot_scores), rules(rule_scores) {
  divide(slots, temperature), divide(rules, temperature);
  for (std::size_t k = 0; bias != 0 && k < rules.size(); ++k) {
    if (grammar.rules[k % grammar.rules.size()].arity >= biased) rules[k] += bias;
  }
  require_finite(rules, "drawing.bias", bias, "one nearer to 0");
  normalise(slots, states), normalise(rules, count);
  for (const double weight : slots) slot_shares_.push_back(std::exp(weight));
  rule_shares_.resize(rules.size());
  for (std::int64_t state = 0; state < states; ++state) {
    for (std::int64_t rule = 0; rule < count; ++rule) {
      rule_shares_[at(rule * states + state)] = std::exp(rules[at(state * count + rule)]);
    }
  }
}

double Weights::of(std::int64_t slot, std::int64_t rule) const {
  double sum = 0;
  const double* const some = &slot_shares_[at(slot * states)];
  const double* const other = &rule_shares_[at(rule * states)];
  for (std::int64_t state = 0; state < states; ++state) sum += some[state] * other[state];
  if (sum > LEAST) return std::log(sum);
  return logsumexp(states, [&](std::int64_t s) { return slots[at(slot * states + s)] + rules[at(s * count + rule)]; });
}

WayChoice::WayChoice(const Ways& ways, const Weights& weights, const std::function<bool(std::int64_t)>& allowed)
    : ways_(ways), weights_(weights) {
  const std::int64_t states = weights.states, names = ways.names();
  if (states >= MOST_PAIRS || states * names >= MOST_PAIRS) {
    throw UserError("found " + with_commas(states) + " latent states and " + with_commas(names) +
                    " names of targets, expected a product below 2^20");
  }
  mass_.assign(at(names * states), NOTHING);
  edges_.reserve(ways.rule.size() * at(states));
  for (std::int64_t name = 0; name < names; ++name) {
    const std::int64_t begin = ways.starts[at(name)], end = ways.starts[at(name + 1)];
    for (std::int64_t state = 0; begin < end && state < states; ++state) {
      const auto score = [&](std::int64_t way) {
        return allowed(way)
                   ? weights.rules[at(state * weights.count + ways.rule[at(way)])] + std::log(ways.share[at(way)])
                   : NOTHING;
      };
      double most = NOTHING, total = 0;
      for (std::int64_t way = begin; way < end; ++way) most = std::max(most, score(way));
      const double zero = most > NOTHING ? most : 0;
      const std::size_t first = edges_.size();
      for (std::int64_t way = begin; way < end; ++way) edges_.push_back(total += std::exp(score(way) - zero));
      if (total > 0) mass_[at(name * states + state)] = most + std::log(total);
      const double base = static_cast<double>(name * states), own = static_cast<double>(state);
      for (std::size_t k = first; k < edges_.size(); ++k) {
        edges_[k] = edges_[k] / (total > 0 ? total : 1) + base + own;
      }
    }
  }
}

double CachedLogs::of(std::int64_t slot, std::int64_t rule) {
  const std::int64_t pair = slot * weights_.count + rule;
  auto& [known, found] = entries_[spread(static_cast<std::uint64_t>(pair)) % SIZE];
  if (known != pair) known = pair, found = weights_.of(slot, rule);
  return found;
}

WayChoice::Cache::Cache(std::int64_t states) : states_(states), size_(1) {
  while (size_ * states < CACHED && size_ < CACHED / 16) size_ *= 2;
  of_.assign(at(size_), nullptr), pair_.assign(at(size_), 0), cumulative_.assign(at(size_ * states), 0);
}

const double* WayChoice::cumulative(std::int64_t slot, std::int64_t name, Cache& cache) const {
  const std::int64_t pair = slot * ways_.names() + name, states = cache.states_;
  const std::size_t mixed = spread(static_cast<std::uint64_t>(pair) + reinterpret_cast<std::uintptr_t>(this));
  const auto entry = static_cast<std::int64_t>(mixed & at(cache.size_ - 1));
  double* const found = &cache.cumulative_[at(entry * states)];
  if (cache.of_[at(entry)] == this && cache.pair_[at(entry)] == pair) return found;
  cache.of_[at(entry)] = this, cache.pair_[at(entry)] = pair;
  const double* const some = &weights_.slots[at(slot * states)];
  const double* const other = &mass_[at(name * states)];
  double most = NOTHING, total = 0;
  for (std::int64_t state = 0; state < states; ++state) most = std::max(most, some[state] + other[state]);
  const double zero = most > NOTHING ? most : 0;
  for (std::int64_t state = 0; state < states; ++state)
    found[state] = total += std::exp(some[state] + other[state] - zero);
  return found;
}

std::int64_t WayChoice::draw(std::int64_t slot, std::int64_t name, double first, double second, Cache& cache) const {
  const std::int64_t states = weights_.states;
  const double* const weight = cumulative(slot, name, cache);
  const double total = weight[states - 1];
  if (!(total > 0)) return -1;
  const std::int64_t state = std::upper_bound(weight, weight + states, first * total) - weight;
  const std::int64_t begin = ways_.starts[at(name)], count = ways_.starts[at(name + 1)] - begin;
  const auto edges = edges_.begin() + states * begin + state * count;
  const auto place =
      std::upper_bound(edges, edges + count, static_cast<double>(name * states + state) + second) - edges;
  return begin + std::min<std::int64_t>(place, count - 1);
}

}  // namespace compgen
