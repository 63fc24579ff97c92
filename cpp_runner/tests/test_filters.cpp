#include <doctest/doctest.h>

#include "errors.h"
#include "filters.h"
#include "output.h"
#include "pools.h"
#include "selection.h"

using namespace compgen;

namespace {

Draw drawn(Tokens tokens, bool finished = true) {
  Draw draw;
  draw.tokens = std::move(tokens);
  draw.finished = finished;
  return draw;
}

Sample one(std::int64_t index, Tokens source, Tokens target, double log_prob,
           std::vector<std::int64_t> prototypes = {}) {
  return {index, std::move(source), std::move(target), log_prob, std::move(prototypes), std::nullopt};
}

}  // namespace

TEST_CASE("each draw is counted under the first reason it falls to") {
  const Training training(Pool(small_pool().bytes(), 2, 10));
  FilterOptions options;
  options.novel = options.unique = options.rare = true;
  options.rarity = 0.5;  // 5, 6, 7 and 8 are held by half or more, 9 by none
  Filter filter(options, training, true);
  CHECK(!filter.keep(drawn({7, SEP, 9}, false)));
  CHECK(!filter.keep(drawn({7, SEP})));
  CHECK(!filter.keep(drawn({5, SEP, 9})));
  CHECK(!filter.keep(drawn({7, SEP, 8})));  // a known target
  CHECK(!filter.keep(drawn({6, 6, 6, SEP, 8, 8})));
  CHECK(filter.keep(drawn({7, SEP, 9})));
  CHECK(!filter.keep(drawn({7, SEP, 9})));
  CHECK(filter.counts.text() ==
        "7 drawn, 1 kept; not kept: 1 unfinished, 1 malformed, 2 not novel, 1 not rare, 1 not unique");
}

TEST_CASE("novelty is of both sides, the source or the pair") {
  const Training training(Pool(small_pool().bytes(), 2, 10));
  CHECK(training.knows({9}, {7}, "both"));
  CHECK(!training.knows({9}, {7}, "source"));
  CHECK(training.knows({5}, {7}, "pair"));
  CHECK(!training.knows({5}, {8}, "pair"));
}

TEST_CASE("a vote keeps the target drawn most often, clear decisions first") {
  const Training training(Pool(small_pool().bytes(), 2, 10));
  const std::vector<Sample> samples = {one(0, {7}, {9}, -3, {0}),   one(1, {7}, {9}, -1, {1}),
                                       one(2, {7}, {5}, -0.5, {0}), one(3, {8}, {9}, -2, {0}),
                                       one(4, {8}, {9}, -1, {0}),   one(5, {5}, {9}, -4, {0})};
  Choice choice;
  choice.vote = true;
  FilterOptions novel;
  novel.novel = true;
  const auto chosen = choice.of(samples, novel, training);
  REQUIRE(chosen.size() == 2);  // the source {5} is known
  CHECK(chosen[0].index == 3);  // the first of two draws with the same prototypes
  CHECK(*chosen[0].votes == std::pair<std::int64_t, std::int64_t>(2, 2));
  CHECK(chosen[1].index == 1);  // the likelier of two draws of the winner, with others
  choice.margin = 2;
  CHECK(choice.of(samples, novel, training).size() == 1);
}

TEST_CASE("what is not rare votes, is not counted as kept, and does not win") {
  const Training training(Pool(small_pool().bytes(), 2, 10));
  FilterOptions rare;
  rare.rare = true;
  rare.rare_tokens = {9};
  Choice choice;
  choice.vote = true;
  Filter filter(choice.drawing(rare), training, true);
  std::vector<Sample> samples;
  for (const auto& tokens : {Tokens{7, SEP, 5}, Tokens{7, SEP, 5}, Tokens{7, SEP, 9}, Tokens{8, SEP, 9}}) {
    const auto pair = filter.keep(drawn(tokens));
    REQUIRE(pair);
    samples.push_back(one(filter.counts.drawn, pair->first, pair->second, -1));
  }
  CHECK(filter.counts.text() == "4 drawn, 2 kept; not kept: 2 not rare");
  CHECK(filter.counts.last == 4);
  const auto chosen = choice.of(samples, rare, training);
  REQUIRE(chosen.size() == 1);
  CHECK(chosen[0].source == Tokens{8});
}

TEST_CASE("support leaves out sources whose new neighbours few samples share") {
  const Training training(Pool(small_pool().bytes(), 2, 10));
  Choice choice;
  choice.support = 0.6;
  const std::vector<Sample> samples = {one(0, {5, 5}, {9}, 0), one(1, {6, 5, 5}, {9}, -1), one(2, {5, 5, 6}, {9}, -2)};
  const auto chosen = choice.of(samples, {}, training);
  REQUIRE(chosen.size() == 2);  // all have 5 5, which is new; 6 5 is new too, and one of three has it
  CHECK(chosen[1].index == 2);
}

TEST_CASE("samples as lines") {
  const std::vector<std::string> vocabulary = {"<pad>", "<s>", "</s>", "→", "<unk>", "a\"b", "c d", "é"};
  Sample sample = one(12, {5, 7}, {6}, -0.50004);
  sample.prototypes = {3, 4};
  CHECK(Spelling(vocabulary).as_json(sample) ==
        R"({"source":["a\"b","é"],"target":["c d"],"index":12,"log_prob":-0.5,"prototypes":[3,4]})");
  CHECK_THROWS_AS(Spelling(vocabulary).as_tsv(sample.source, sample.target), UserError);
  sample.target = {7};
  sample.votes = {2, 3};
  sample.log_prob = -3;
  CHECK(Spelling(vocabulary).as_tsv(sample.source, sample.target) == "a\"b é\té");
  CHECK(Spelling(vocabulary).as_json(sample) ==
        R"({"source":["a\"b","é"],"target":["é"],"index":12,"log_prob":-3.0,"prototypes":[3,4],"votes":[2,3]})");
}
