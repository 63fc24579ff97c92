// The rules of a grammar (compgen/csl/rules.py): a source and a target side, whose nonterminals NT_1, NT_2, ... stand
// once in the source and once or more in the target.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace compgen {

using Symbols = std::vector<std::int32_t>;  // numbers of tokens, and -i for NT_i

// A rule in normal form: the k-th nonterminal of the source is NT_k.
struct Rule {
  Symbols source, target;
  std::int32_t arity = 0;  // nonterminals in the source
};

// Distinct rules in the order of their tokens, and the tokens in theirs, both as in Python: scores are by place.
struct Grammar {
  // Reads lines `source ### target`. Throws UserError: a line is not a rule.
  explicit Grammar(const std::string& text);

  std::vector<std::string> tokens;
  std::vector<Rule> rules;
  std::int32_t most = 0;   // the largest arity
  std::int64_t slots = 1;  // the root, and each nonterminal of each rule's source
};

}  // namespace compgen
