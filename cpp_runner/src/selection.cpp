#include "selection.h"

#include <algorithm>
#include <map>
#include <set>

#include "errors.h"

namespace compgen {
namespace {

using Neighbours = std::set<std::pair<std::int32_t, std::int32_t>>;

// Clear decisions first: by margin, then by votes, then by probability. Of draws that are alike in prototypes, too, the
// first stands for all.
std::vector<Sample> elect(std::vector<Sample> samples, std::optional<std::int64_t> margin) {
  std::unordered_map<std::string, std::int64_t> cast, won;
  std::vector<std::pair<std::string, std::string>> keys;  // of the source, and of both sides
  for (const auto& one : samples) {
    std::string source = key_of(one.source), both = source + key_of({SEP}) + key_of(one.target);
    ++cast[source];
    ++won[both];
    keys.emplace_back(std::move(source), std::move(both));
  }
  std::vector<Sample> first;
  Keys known;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const auto& [source, both] = keys[k];
    const auto& chosen = samples[k].prototypes;  // as many in all samples
    const std::string tuple(reinterpret_cast<const char*>(chosen.data()), chosen.size() * sizeof(chosen[0]));
    if (!known.insert(both + tuple).second) continue;
    samples[k].votes = std::pair(won[both], cast[source]);
    first.push_back(std::move(samples[k]));
  }
  std::stable_sort(first.begin(), first.end(), [](const Sample& a, const Sample& b) {
    return std::pair(-a.votes->first, -a.log_prob) < std::pair(-b.votes->first, -b.log_prob);
  });
  std::vector<Sample> winners;
  Keys seen;
  for (auto& one : first) {
    if (seen.insert(key_of(one.source)).second) winners.push_back(std::move(one));
  }
  const auto by = [](const Sample& one) { return 2 * one.votes->first - one.votes->second; };
  std::stable_sort(winners.begin(), winners.end(), [&](const auto& a, const auto& b) { return by(a) > by(b); });
  const auto close = [&](const Sample& one) { return margin && by(one) < *margin; };
  winners.erase(std::remove_if(winners.begin(), winners.end(), close), winners.end());
  return winners;
}

// Pairs of neighbouring tokens; both ends of a source count as neighbours.
Neighbours neighbours(const Tokens& source) {
  Neighbours pairs;
  std::int32_t last = BOS;
  for (const auto token : source) {
    pairs.emplace(last, token);
    last = token;
  }
  pairs.emplace(last, EOS);
  return pairs;
}

std::vector<Sample> supported(std::vector<Sample> samples, const Training& training, double share) {
  Neighbours old;
  for (const auto& [source, target] : training.examples) old.merge(neighbours(source));
  std::vector<Neighbours> fresh;
  std::map<Neighbours::value_type, std::int64_t> held;
  for (const auto& one : samples) {
    fresh.emplace_back();
    for (const auto& pair : neighbours(one.source)) {
      if (!old.count(pair)) fresh.back().insert(pair), ++held[pair];
    }
  }
  const auto all = static_cast<double>(samples.size());
  std::vector<Sample> chosen;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const auto enough = [&](const auto& pair) { return static_cast<double>(held[pair]) / all >= share; };
    if (std::all_of(fresh[k].begin(), fresh[k].end(), enough)) chosen.push_back(std::move(samples[k]));
  }
  return chosen;
}

}  // namespace

FilterOptions Choice::drawing(const FilterOptions& filters) const {
  if (margin && !vote) throw UserError("a margin says by how many votes a vote must be won: use it with --vote");
  FilterOptions drawing = filters;
  if (!vote) return drawing;
  if (filters.unique) {
    throw UserError("a vote counts repeated draws, which the filter unique drops: leave unique out");
  }
  drawing.novel = filters.novel && filters.novelty != "pair";
  drawing.novelty = "source";
  drawing.voting = true;
  return drawing;
}

std::vector<Sample> Choice::of(std::vector<Sample> samples, const FilterOptions& filters,
                               const Training& training) const {
  if (vote) {
    samples = elect(std::move(samples), margin);
    if (filters.novel) {
      const auto known = [&](const Sample& one) { return training.knows(one.source, one.target, filters.novelty); };
      samples.erase(std::remove_if(samples.begin(), samples.end(), known), samples.end());
    }
    if (filters.rare) {
      const Filter filter(filters, training, training.has_targets);
      const auto usual = [&](const Sample& one) { return !filter.is_rare(one.source, one.target); };
      samples.erase(std::remove_if(samples.begin(), samples.end(), usual), samples.end());
    }
  } else {
    const auto likelier = [](const Sample& a, const Sample& b) { return a.log_prob > b.log_prob; };
    std::stable_sort(samples.begin(), samples.end(), likelier);
  }
  if (support) samples = supported(std::move(samples), training, *support);
  if (best && static_cast<std::int64_t>(samples.size()) > *best) samples.resize(static_cast<std::size_t>(*best));
  return samples;
}

}  // namespace compgen
