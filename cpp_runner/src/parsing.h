// The answers of a grammar: the target of a source's most probable derivation (compgen/csl/parsing.py).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bundled_grammar.h"
#include "pool.h"

namespace compgen {

// Finds the best derivations of sources in threads. Throws UserError as `BundledGrammar`.
class GrammarParser {
 public:
  explicit GrammarParser(const Bundle& bundle);
  ~GrammarParser();

  // The target of each source, without tokens where there is none: no rules derive it, the best target is not well
  // formed, all have more tokens than a side may have, or finding the best takes too many steps. Both are places in
  // `tokens`: the bundle's vocabulary, and what else sources have, which a grammar may copy.
  std::vector<Tokens> answers(const std::vector<Tokens>& sources, const std::vector<std::string>& tokens,
                              int workers) const;

 private:
  class Search;
  struct Rules;
  std::unique_ptr<const Rules> rules_;
};

}  // namespace compgen
