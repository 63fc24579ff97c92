#include <doctest/doctest.h>

#include "errors.h"
#include "rules.h"

using namespace compgen;

TEST_CASE("rules are distinct, in normal form, and in the order of their tokens") {
  const Grammar grammar("b ### B\n\nNT_2 and NT_7 ### NT_7 NT_2 NT_7\nNT_1 and NT_2 ### NT_2 NT_1 NT_2\nZ ### B B\n");
  CHECK(grammar.tokens == std::vector<std::string>{"B", "Z", "and", "b"});
  REQUIRE(grammar.rules.size() == 3);
  CHECK(grammar.rules[0].source == Symbols{-1, 2, -2});  // "NT_1" comes before "Z"
  CHECK(grammar.rules[0].target == Symbols{-2, -1, -2});
  CHECK(grammar.rules[1].source == Symbols{1});
  CHECK(grammar.rules[2].target == Symbols{0});
  CHECK(grammar.slots == 3);
  CHECK(grammar.most == 2);
}

TEST_CASE("nonterminals are sorted by their names") {
  std::string source, target;
  for (int k = 1; k <= 11; ++k) source += "NT_" + std::to_string(k) + " ";
  const Grammar grammar(source + "### " + source + "\n" + source + "### NT_10 NT_1 NT_2 NT_3 NT_4 NT_5 NT_6 NT_7 NT_8 NT_9 NT_11\n");
  CHECK(grammar.rules[0].target[0] == -1);  // "NT_1" is a beginning of "NT_10"
  CHECK(grammar.most == 11);
}

TEST_CASE("lines that are no rules are refused") {
  for (const char* text : {"a", "a b", "### a", "a ###", "a ### b ### c", "NT_1 ### a", "a ### NT_1", "NT_1 NT_1 ### NT_1",
                           "NT_0 ### NT_0", "NT_100 ### NT_100", "NT_x ### a", "NT_ ### a"}) {
    CHECK_THROWS_AS(Grammar{text}, UserError);
  }
  CHECK_THROWS_WITH(Grammar("a ### b\n a b\n"),
                    "rules, line 2: found 'a b', expected 'source ### target', tokens separated by spaces, neither side empty");
  CHECK(Grammar("\n \n").rules.empty());
}

TEST_CASE("a rule with many nonterminals is no harm") {
  std::string side;
  for (int k = 0; k < 5000; ++k) side += "NT_7 ";
  CHECK_THROWS_AS(Grammar(side + "### NT_7"), UserError);
  CHECK(Grammar("NT_7 ### " + side).rules[0].target.size() == 5000);
}
