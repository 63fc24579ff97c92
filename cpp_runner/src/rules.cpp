#include "rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "errors.h"
#include "text.h"

namespace compgen {
namespace {

constexpr std::int32_t MOST = 99;  // nonterminals of a rule
constexpr std::string_view SEPARATOR = "###", PREFIX = "NT_";

using Words = std::vector<std::string_view>;

struct Line {
  std::string place;
  Words source, target;
};

// The number of the nonterminal that a token names; 0 if it names none.
std::int32_t nonterminal(std::string_view token) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (token.size() < 4 || token.size() > 5 || token.substr(0, 3) != PREFIX) return 0;
  if (!std::all_of(token.begin() + 3, token.end(), digit) || token[3] == '0') return 0;
  return std::stoi(std::string(token.substr(3)));
}

Line cut(std::string place, std::string_view text) {
  const Words words = split(text);
  const auto middle = std::find(words.begin(), words.end(), SEPARATOR);
  if (std::count(words.begin(), words.end(), SEPARATOR) != 1 || middle == words.begin() || middle + 1 == words.end()) {
    throw UserError(place + ": found " + quoted(text, 80) +
                    ", expected 'source ### target', tokens separated by spaces, neither side empty");
  }
  return {std::move(place), Words(words.begin(), middle), Words(middle + 1, words.end())};
}

std::vector<Line> lines_of_rules(const std::string& text) {
  std::vector<Line> found;
  std::int64_t number = 0;
  for (const auto line : lines_of(text)) {
    ++number;
    if (!split(line).empty()) found.push_back(cut("rules, line " + std::to_string(number), line));
  }
  return found;
}

std::vector<std::string> tokens_of(const std::vector<Line>& lines) {
  std::set<std::string_view> tokens;
  for (const auto& line : lines) {
    for (const auto* side : {&line.source, &line.target}) {
      for (const auto token : *side) {
        if (nonterminal(token)) continue;
        if (token.substr(0, PREFIX.size()) == PREFIX) {
          throw UserError(line.place + ": found the token " + quoted(token, 80) +
                          ", expected none that begins with NT_: rules use these");
        }
        tokens.insert(token);
      }
    }
  }
  return {tokens.begin(), tokens.end()};
}

// Numbers nonterminals anew in the order of the source.
Rule rule_of(const Line& line, const std::map<std::string_view, std::int32_t>& numbers) {
  Rule rule;
  std::array<std::int32_t, MOST + 1> place{};  // of each nonterminal in the source, from 1
  std::array<bool, MOST + 1> used{};           // in the target
  bool fits = true;
  for (const auto token : line.source) {
    const std::int32_t name = nonterminal(token);
    if (name) {
      fits = fits && !place[static_cast<std::size_t>(name)];
      place[static_cast<std::size_t>(name)] = ++rule.arity;
    }
    rule.source.push_back(name ? -rule.arity : numbers.at(token));
  }
  for (const auto token : line.target) {
    const std::int32_t name = nonterminal(token);
    if (name) used[static_cast<std::size_t>(name)] = true;
    rule.target.push_back(name ? -place[static_cast<std::size_t>(name)] : numbers.at(token));
  }
  for (std::size_t name = 1; name < used.size(); ++name) fits = fits && used[name] == (place[name] > 0);
  if (fits) return rule;
  throw UserError(line.place + ": found the nonterminals of " + quoted(joined(line.source), 60) + " and " +
                  quoted(joined(line.target), 60) +
                  ", expected each once in the source, and the same ones in the target");
}

// The place of each symbol, counted from -MOST on, among the names of all nonterminals and tokens.
std::vector<std::int32_t> ranks_of(const std::vector<std::string>& tokens) {
  std::vector<std::pair<std::string, std::int32_t>> names;
  for (std::int32_t k = 1; k <= MOST; ++k) names.emplace_back(std::string(PREFIX) + std::to_string(k), -k);
  for (std::size_t k = 0; k < tokens.size(); ++k) names.emplace_back(tokens[k], static_cast<std::int32_t>(k));
  std::sort(names.begin(), names.end());
  std::vector<std::int32_t> ranks(names.size() + 1);
  for (std::size_t k = 0; k < names.size(); ++k) {
    ranks[static_cast<std::size_t>(names[k].second + MOST)] = static_cast<std::int32_t>(k);
  }
  return ranks;
}

}  // namespace

Grammar::Grammar(const std::string& text) {
  const auto lines = lines_of_rules(text);
  tokens = tokens_of(lines);
  std::map<std::string_view, std::int32_t> numbers;
  for (const auto& token : tokens) numbers.emplace(token, static_cast<std::int32_t>(numbers.size()));
  for (const auto& line : lines) rules.push_back(rule_of(line, numbers));
  const auto ranks = ranks_of(tokens);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return ranks[static_cast<std::size_t>(a + MOST)] < ranks[static_cast<std::size_t>(b + MOST)];
  };
  const auto less = [&](const Symbols& a, const Symbols& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), before);
  };
  std::sort(rules.begin(), rules.end(), [&](const Rule& a, const Rule& b) {
    return a.source == b.source ? less(a.target, b.target) : less(a.source, b.source);
  });
  const auto equal = [](const Rule& a, const Rule& b) { return a.source == b.source && a.target == b.target; };
  rules.erase(std::unique(rules.begin(), rules.end(), equal), rules.end());
  for (const auto& rule : rules) {
    most = std::max(most, rule.arity);
    slots += rule.arity;
  }
}

}  // namespace compgen
