#include "filters.h"

#include <algorithm>

#include "errors.h"
#include "numbers.h"
#include "text.h"

namespace compgen {
namespace {

std::string key_of_pair(const Tokens& source, const Tokens& target) {
  Tokens whole = source;
  whole.push_back(SEP);
  whole.insert(whole.end(), target.begin(), target.end());
  return key_of(whole);
}

Tokens before_end(const Tokens& sequence) {
  return Tokens(sequence.begin(), std::find(sequence.begin(), sequence.end(), EOS));
}

void add_ngrams(const Tokens& tokens, std::size_t n, Keys& keys) {
  for (std::size_t k = 0; k + n <= tokens.size(); ++k) keys.insert(key_of(tokens.data() + k, n));
}

Keys ngrams(const Tokens& source, const Tokens& target, std::size_t n) {
  Keys keys;
  add_ngrams(source, n, keys);
  add_ngrams(target, n, keys);
  return keys;
}

}  // namespace

void Counts::reject(const std::string& reason) {
  const auto same = [&](const auto& entry) { return entry.first == reason; };
  const auto found = std::find_if(rejected.begin(), rejected.end(), same);
  if (found == rejected.end()) {
    rejected.emplace_back(reason, 1);
  } else {
    ++found->second;
  }
}

std::string Counts::text() const {
  std::string text = with_commas(drawn) + " drawn, " + with_commas(kept) + " kept";
  const char* between = "; not kept: ";
  for (const auto& [reason, count] : rejected) {
    text += between + with_commas(count) + " " + reason;
    between = ", ";
  }
  return text;
}

std::optional<std::pair<Tokens, Tokens>> halves(const Tokens& tokens, bool targets) {
  if (std::count(tokens.begin(), tokens.end(), SEP) != 1) return std::nullopt;
  const auto middle = std::find(tokens.begin(), tokens.end(), SEP);
  if (middle == tokens.begin() || (middle + 1 != tokens.end()) != targets) return std::nullopt;
  return std::pair(Tokens(tokens.begin(), middle), Tokens(middle + 1, tokens.end()));
}

Training::Training(const Pool& pool) : has_targets(pool.targets()) {
  for (const auto& sequence : pool.sequences()) {
    auto pair = halves(before_end(sequence), has_targets);
    if (!pair) continue;
    sources.insert(key_of(pair->first));
    targets.insert(key_of(pair->second));
    pairs.insert(key_of_pair(pair->first, pair->second));
    examples.push_back(std::move(*pair));
  }
}

bool Training::knows(const Tokens& source, const Tokens& target, const std::string& novelty) const {
  if (novelty == "pair") return pairs.count(key_of_pair(source, target)) > 0;
  return sources.count(key_of(source)) > 0 || (novelty == "both" && has_targets && targets.count(key_of(target)) > 0);
}

Keys Training::common(std::size_t n, double rarity) const {
  std::unordered_map<std::string, std::int64_t> held;
  for (const auto& [source, target] : examples) {
    for (const auto& ngram : ngrams(source, target, n)) ++held[ngram];
  }
  Keys keys;
  for (const auto& [ngram, count] : held) {  // 29 of 100 is 0.29 exactly, but 0.29 times 100 is less than 29
    if (static_cast<double>(count) / static_cast<double>(examples.size()) > rarity) keys.insert(ngram);
  }
  return keys;
}

Filter::Filter(const FilterOptions& options, const Training& training, bool targets)
    : options_(options), training_(training), targets_(targets) {
  if (options.rare && options.rare_tokens.empty()) common_ = training.common(options.ngram, options.rarity);
}

std::optional<std::pair<Tokens, Tokens>> Filter::keep(const Draw& draw) {
  ++counts.drawn;
  auto pair = halves(draw.tokens, targets_);
  const std::string why = draw.given_up     ? "not novel"
                          : !draw.finished ? "unfinished"
                          : !pair          ? "malformed"
                                           : reason(pair->first, pair->second);
  if (!why.empty()) {
    counts.reject(why);
    return std::nullopt;
  }
  if (options_.rare && options_.voting && !is_rare(pair->first, pair->second)) {
    counts.reject("not rare");
    return pair;
  }
  ++counts.kept;
  counts.last = counts.drawn;
  return pair;
}

bool Filter::remember(const Tokens& source, const Tokens& target) {
  return seen_.insert(key_of_pair(source, target)).second;
}

void Filter::require_rare(std::size_t vocabulary) const {
  if (!options_.rare || options_.ngram > 1) return;
  for (std::size_t token = SPECIALS; token < vocabulary; ++token) {
    if (is_rare({static_cast<std::int32_t>(token)}, {})) return;
  }
  throw ExhaustedError("no token is rare: each is in more than " + shortened(options_.rarity) +
                       " of the training examples: raise --rarity, or say by --rare-token what is rare");
}

std::optional<Pool> Filter::pool(const Pool& pool) const {
  if (options_.prototypes == "all") return std::nullopt;
  if (pool.prototypes() == 0) throw UserError("the generator has no prototypes of which one could be rare");
  std::vector<bool> rare;
  for (const auto& sequence : pool.sequences()) {
    const auto pair = halves(before_end(sequence), targets_);
    rare.push_back(pair && is_rare(pair->first, pair->second));
  }
  Pool found = pool.holding(rare);
  if (found.total() == 0) throw UserError("no prototype is rare: draw from all of them");
  return found;
}

bool Filter::is_rare(const Tokens& source, const Tokens& target) const {
  if (options_.rare_tokens.empty()) {
    const Keys held = ngrams(source, target, options_.ngram);
    return std::any_of(held.begin(), held.end(), [this](const auto& ngram) { return common_.count(ngram) == 0; });
  }
  const auto has = [](const Tokens& side, std::int32_t token) { return std::count(side.begin(), side.end(), token) > 0; };
  const auto held = [&](std::int32_t token) { return has(source, token) || has(target, token); };
  return std::any_of(options_.rare_tokens.begin(), options_.rare_tokens.end(), held);
}

std::string Filter::reason(const Tokens& source, const Tokens& target) {
  if (options_.novel && training_.knows(source, target, options_.novelty)) return "not novel";
  if (options_.rare && !options_.voting && !is_rare(source, target)) return "not rare";
  if (options_.unique && !remember(source, target)) return "not unique";
  return "";
}

}  // namespace compgen
