// Target grammars: context-free grammars of well-formed targets, and what they make of the targets of rules
// (compgen/csl/targets.py).
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "charts.h"
#include "rules.h"

namespace compgen {

constexpr const char* ROOT = "ROOT";
constexpr std::int32_t OTHER = std::numeric_limits<std::int32_t>::max() - 1;  // in a target: a token that is in no rule

// A rule: a name, and the symbols that it becomes; those with the prefix ## are names.
struct TargetRule {
  std::string name;
  std::vector<std::string> symbols;

  // The names among the symbols, without their prefix.
  std::vector<std::string> kinds() const;
  // Whether the only symbol is a name.
  bool is_unit() const;
};

class TargetGrammar {
 public:
  // Reads lines `LHS => token ##NAME token`. Throws UserError: a line is not a rule, a name has no rule or none that
  // ends, unit rules form a circle, or ROOT has no rule.
  explicit TargetGrammar(const std::string& text);

  const std::vector<TargetRule>& rules() const { return rules_; }

 private:
  std::vector<TargetRule> rules_;    // distinct, in the order of their lines
  std::vector<std::string> places_;  // of each, for messages
};

// The names by which a target can be derived: of the whole, of NT_1, of NT_2, and so on.
using Signature = std::vector<std::string>;

// Decides what targets of rules are parts of well-formed targets, in the numbers of a grammar's tokens.
class Checker {
 public:
  Checker(const TargetGrammar& targets, const std::vector<std::string>& tokens);

  // All signatures of a target, ascending. All occurrences of one nonterminal have the same name.
  std::vector<Signature> signatures(const Symbols& target) const;
  // Whether ROOT derives a target without nonterminals, and so many steps are enough to see it.
  bool derives_soon(const Symbols& target, std::int64_t steps) const;

 private:
  friend class Spans;

  // A pattern, and the rules that have it: their names, and the names of their nonterminals.
  struct Open {
    Terminals<Symbols> pattern;
    std::vector<std::pair<std::int32_t, std::vector<std::int32_t>>> rules;
  };

  void enter(const TargetRule& rule, const std::map<std::string, std::int32_t>& numbers);

  std::vector<std::string> names_;                           // sorted
  std::map<std::string, std::int32_t> number_;               // of each name
  std::vector<std::int32_t> others_;                         // tokens that are in no rule
  std::map<Symbols, std::vector<std::int32_t>> closed_;      // names by sequences of tokens
  std::map<std::int32_t, std::vector<std::int32_t>> units_;  // names by the name that a unit rule becomes
  std::map<std::int32_t, std::map<Symbols, Open>> open_;     // by the first token; a nonterminal is -1
};

}  // namespace compgen
