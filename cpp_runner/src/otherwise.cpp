#include "otherwise.h"

#include <algorithm>
#include <iostream>
#include <set>
#include <unordered_map>

#include "errors.h"
#include "open.h"
#include "sources.h"
#include "text.h"

namespace compgen {
namespace {

constexpr std::size_t NAMED = 5;  // tokens that a remark names

std::unordered_map<std::string, std::int32_t> numbered(const std::vector<std::string>& tokens) {
  std::unordered_map<std::string, std::int32_t> numbers;
  for (const auto& token : tokens) numbers.emplace(token, static_cast<std::int32_t>(numbers.size()));
  return numbers;
}

}  // namespace

Otherwise::Otherwise(const Options& options)
    : name_(*options.otherwise), bundle_(name_), spares_(spares_of(bundle_.vocabulary)) {
  require_predictor(bundle_);
  how_.slots = options.sampling.slots, how_.workers = options.sampling.workers;
  predictor_ = open_predictor(bundle_, options.step, how_.beam, how_.slots);
}

std::vector<Answer> Otherwise::answers(const std::vector<Tokens>& sources, std::vector<std::string>& tokens) const {
  const Known known = known_of(tokens);
  remark(sources, tokens, known);
  std::vector<Tokens> asked;
  std::vector<Read> all;
  for (const auto& source : sources) {
    all.push_back(read(source, tokens, known));
    asked.push_back(all.back().ids);
  }
  const auto ranked = compgen::answers(bundle_, *predictor_, asked, how_);
  const Tokens places = places_in(tokens);
  std::vector<Answer> found;
  for (std::size_t row = 0; row < sources.size(); ++row) {
    found.push_back(ranked[row].front());
    for (auto& token : found.back().target) {
      const auto id = static_cast<std::size_t>(token);
      const bool lent = id >= SPECIALS && id - SPECIALS < all[row].lent.size();
      token = lent ? all[row].lent[id - SPECIALS] : places[id];
    }
  }
  return found;
}

Otherwise::Known Otherwise::known_of(const std::vector<std::string>& tokens) const {
  const auto numbers = numbered(bundle_.vocabulary);
  Known known;
  for (const auto& token : tokens) {
    const auto found = numbers.find(token);
    known.has.push_back(found != numbers.end());
    known.ids.push_back(known.has.back() ? found->second : static_cast<std::int32_t>(UNK));
  }
  return known;
}

// As `unknown_remark` in compgen/trained/predictor.py.
void Otherwise::remark(const std::vector<Tokens>& sources, const std::vector<std::string>& tokens,
                       const Known& known) const {
  std::set<std::int32_t> places;
  for (const auto& source : sources) places.insert(source.begin(), source.end());
  std::set<std::string> unknown;
  for (const auto place : places) {
    if (!known.has[static_cast<std::size_t>(place)]) unknown.insert(tokens[static_cast<std::size_t>(place)]);
  }
  if (unknown.empty()) return;
  std::string some;
  const auto end = std::next(unknown.begin(), static_cast<std::ptrdiff_t>(std::min(unknown.size(), NAMED)));
  for (auto token = unknown.begin(); token != end; ++token) some += (some.empty() ? "" : ", ") + *token;
  const bool most = 2 * unknown.size() > places.size();
  std::cerr << printable(name_) << ": " << with_commas(static_cast<std::int64_t>(unknown.size()))
            << (unknown.size() > 1 ? " source tokens are" : " source token is") << " unknown to it"
            << (most ? ", most of them (a header line, another order of columns, other data?)" : "") << ": " << some
            << (unknown.size() > NAMED ? ", ..." : "") << " so far\n";
}

// As `Vocabulary.lend`.
Otherwise::Read Otherwise::read(const Tokens& source, const std::vector<std::string>& tokens, const Known& known) const {
  Read found;
  for (const auto place : source) {
    const auto at = static_cast<std::size_t>(place);
    auto id = known.ids[at];
    if (known.has[at] && static_cast<std::size_t>(id) < SPECIALS + spares_) {
      throw special_in_data(tokens[at]);
    }
    if (!known.has[at]) {
      auto& lent = found.lent;
      const auto same = std::find(lent.begin(), lent.end(), place);
      const auto number = static_cast<std::size_t>(same - lent.begin());
      if (same == lent.end() && number < spares_) lent.push_back(place);
      if (number < lent.size()) id = static_cast<std::int32_t>(SPECIALS + number);
    }
    found.ids.push_back(id);
  }
  return found;
}

Tokens Otherwise::places_in(std::vector<std::string>& tokens) const {
  auto numbers = numbered(tokens);
  Tokens places;
  for (const auto& token : bundle_.vocabulary) {
    const auto [found, is_new] = numbers.emplace(token, static_cast<std::int32_t>(tokens.size()));
    if (is_new) tokens.push_back(token);
    places.push_back(found->second);
  }
  return places;
}

}  // namespace compgen
