#include <doctest/doctest.h>

#include <algorithm>

#include "errors.h"
#include "targets.h"

using namespace compgen;

namespace {

const char* const QUERIES =
    "# questions\n\nROOT => answer ( ##STATE )\nROOT => answer ( ##CITY )\nSTATE => ##PLACEHOLDER\n"
    "CITY => ##PLACEHOLDER\nPLACEHOLDER => m0\nSTATE => ##CITY_TO_STATE ( ##CITY )\n"
    "CITY => ##STATE_TO_CITY ( ##STATE )\nCITY_TO_STATE => loc\nSTATE_TO_CITY => capital\n"
    "STATE => both ( ##STATE , ##STATE )\nCITY => both ( ##CITY , ##CITY )\n";

std::vector<Signature> signatures(const std::string& targets, const std::string& rule) {
  const Grammar grammar(rule);
  return Checker(TargetGrammar(targets), grammar.tokens).signatures(grammar.rules[0].target);
}

}  // namespace

TEST_CASE("signatures are the names that the whole and the nonterminals can have") {
  using Found = std::vector<Signature>;
  const auto of = [](const std::string& rule) { return signatures(QUERIES, rule); };
  CHECK(of("x ### answer ( capital ( m0 ) )") == Found{{"ROOT"}});
  CHECK(of("x ### m0") == Found{{"CITY"}, {"PLACEHOLDER"}, {"STATE"}});
  CHECK(of("x ### loc ( loc ( m0 ) )").empty());
  CHECK(of("x ### loc ( unheard )").empty());
  CHECK(of("x NT_1 ### loc ( NT_1 )") == Found{{"STATE", "CITY"}, {"STATE", "PLACEHOLDER"}});
  CHECK(of("x NT_1 NT_2 ### NT_2 ( loc ( NT_1 ) )") ==
        Found{{"CITY", "CITY", "STATE_TO_CITY"}, {"CITY", "PLACEHOLDER", "STATE_TO_CITY"}});
  CHECK(of("x NT_1 ### both ( capital ( NT_1 ) , NT_1 )") == Found{{"CITY", "PLACEHOLDER"}});
  CHECK(of("x NT_1 ### answer ( NT_1 ( NT_1 ) )").empty());
}

TEST_CASE("two unit rules stack, and not three") {
  const auto found = signatures("ROOT => x ##A\nA => ##B\nB => ##C\nC => ##D\nD => d\n", "s ### d");
  CHECK(found == std::vector<Signature>{{"B"}, {"C"}, {"D"}});
}

TEST_CASE("a name may stand for any token that is in no rule") {
  const char* const targets = "ROOT => the ##WORD\nWORD => ##\nWORD => new ##WORD\n";
  CHECK(signatures(targets, "s ### the new dog") == std::vector<Signature>{{"ROOT"}});
  CHECK(signatures(targets, "s ### dog") == std::vector<Signature>{{"WORD"}});
  CHECK(signatures(targets, "s ### new").empty());
}

TEST_CASE("long targets are no deep recursion") {
  std::string side;
  for (int k = 0; k < 700; ++k) side += "f ( ";
  side += "x";
  for (int k = 0; k < 700; ++k) side += " )";
  CHECK(signatures("ROOT => f ( ##ROOT )\nROOT => x\n", "s ### " + side) == std::vector<Signature>{{"ROOT"}});
}

TEST_CASE("no more ways are tried than there is time for") {
  std::string all = "ROOT => ##A ##A ##A ##A ##A ##A ##A ##A ##A ##A ##A ##A", line = "c ###";
  for (int k = 0; k < 60; ++k) line += " a";
  const Grammar grammar(line);
  const Checker checker(TargetGrammar(all + "\nA => a ##A\nA => a"), grammar.tokens);
  CHECK_THROWS_WITH_AS(checker.signatures(grammar.rules[0].target),
                       "target grammar: found a rule whose target can be derived in too many ways, expected fewer",
                       UserError);
}

TEST_CASE("target grammars that cannot be used are refused") {
  for (const char* text : {"", "STATE", "STATE =>", "STATE -> a", "ROOT => ##CITY", "ROOT => ##ROOT", "A => a",
                           "ROOT => a\nSTATE => x ##STATE", "ROOT => a ##", "ROOT => ## a"}) {
    CHECK_THROWS_AS(TargetGrammar{text}, UserError);
  }
  CHECK_THROWS_WITH(TargetGrammar("ROOT => ##A\nA => ##B\nB => ##C\nC => ##B\nC => ##D\nD => d\n"),
                    "target grammar, line 3: found B => ##C, a rule of a single nonterminal in a circle (B, C), "
                    "expected no circle");
  CHECK(TargetGrammar("ROOT => ##A\nA => ##B\nB => ##C\nC => ( ##B )\nC => ##D\nD => d\nD => d\n").rules().size() == 6);
}
