#include "bundled_grammar.h"

#include "errors.h"
#include "safetensors.h"
#include "sources.h"

namespace compgen {

BundledGrammar::BundledGrammar(const Bundle& bundle) : grammar(bundle.file(RULES)), settings(bundle.grammar) {
  if (grammar.rules.empty()) throw UserError("found a grammar without rules, expected some to draw from");
  try {
    read_scores(bundle.file(SCORES));
  } catch (const UserError& error) {
    throw UserError("scores or settings that are not this grammar's: " + std::string(error.what()));
  }
  const std::string& text = bundle.file(TARGET_RULES);
  if (!text.empty()) targets = std::make_unique<const TargetGrammar>(text);
  ids = encoded(grammar.tokens, bundle.vocabulary);
  std::int64_t slot = 1;
  for (const auto& rule : grammar.rules) slots.push_back(slot), slot += rule.arity;
}

void BundledGrammar::read_scores(const std::string& file) {
  const Safetensors arrays(file);
  arrays.require_only({"slots", "rules"});
  const auto shape = arrays.shape("rules");
  states = shape.empty() ? 0 : shape[0];
  if (states < 1) throw UserError("found no latent states, expected one or more");
  const auto of_slots = arrays.reals<double>("slots", {grammar.slots, states});
  const auto of_rules = arrays.reals<double>("rules", {states, static_cast<std::int64_t>(grammar.rules.size())});
  slot_scores.assign(of_slots.begin(), of_slots.end()), rule_scores.assign(of_rules.begin(), of_rules.end());
}

}  // namespace compgen
