// What charts have in common, which say of the parts of a sequence what derives them; see compgen/csl/charts.py.
#pragma once

#include <cstddef>
#include <vector>

namespace compgen {

constexpr std::size_t MILE = 128;  // tokens; recursion must not go deeper by many times as much

struct TooManySteps {};

// The terminals of a side with one nonterminal or more, around these.
template <class Sequence>
struct Terminals {
  Sequence head, tail;
  std::vector<Sequence> separators;  // between each two neighbouring nonterminals
  std::vector<std::size_t> after;    // at least so many tokens after each separator
  std::size_t least = 0;             // the length of the shortest expansion

  Terminals() = default;
  template <class Is>
  Terminals(const Sequence& side, Is is_nonterminal) : least(side.size()) {
    std::vector<Sequence> parts(1);
    for (const auto symbol : side) {
      if (is_nonterminal(symbol)) parts.emplace_back();
      else parts.back().push_back(symbol);
    }
    head = parts.front(), tail = parts.back();
    separators.assign(parts.begin() + 1, parts.end() - 1);
    after.resize(separators.size());
    std::size_t length = 1;
    for (std::size_t k = separators.size(); k-- > 0; length += 1 + separators[k].size()) after[k] = length;
  }
};

}  // namespace compgen
