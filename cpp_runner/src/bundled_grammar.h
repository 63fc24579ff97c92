// The grammar of a bundle: its rules, their scores, and perhaps a grammar of well-formed targets.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bundle.h"
#include "rules.h"
#include "targets.h"

namespace compgen {

struct BundledGrammar {
  // Throws UserError: rules, scores or target rules are damaged or do not fit together.
  explicit BundledGrammar(const Bundle& bundle);

  Grammar grammar;
  std::unique_ptr<const TargetGrammar> targets;  // null: any target is well formed
  GrammarSettings settings;
  std::int64_t states = 0;
  std::vector<double> slot_scores, rule_scores;  // (slots, S), (S, rules)
  std::vector<std::int32_t> ids;                 // of the grammar's tokens in the vocabulary
  std::vector<std::int64_t> slots;               // (rules) the slot of NT_1 of each rule, before those of NT_2 and so on

 private:
  void read_scores(const std::string& file);
};

}  // namespace compgen
