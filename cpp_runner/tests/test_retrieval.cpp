#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "direct.h"
#include "pools.h"
#include "retrieval.h"

using namespace compgen;

namespace {

Tokens of(const std::string& text) { return {text.begin(), text.end()}; }

// The table, written plainly.
std::int64_t by_table(const Tokens& one, const Tokens& other) {
  std::vector<std::int64_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::int64_t diagonal = row[0]++;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::int64_t replaced = diagonal + (one[i] != other[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

TEST_CASE("distances that are known") {
  const auto distance = [](const char* one, const char* other) { return Pattern(of(one), 128).distance(of(other)); };
  CHECK(distance("kitten", "sitting") == 3);
  CHECK(distance("saturday", "sunday") == 3);
  CHECK(distance("", "abc") == 3);
  CHECK(distance("abc", "") == 3);
  CHECK(distance("", "") == 0);
  CHECK(distance("abc", "abc") == 0);
}

TEST_CASE("distances are those of the table, also of sequences longer than a word of the processor") {
  std::mt19937 random(5);
  std::uniform_int_distribution<std::int32_t> letter(0, 3), edit(0, 9);
  for (const std::size_t size : {1, 5, 63, 64, 65, 127, 128, 129, 200}) {
    for (const std::size_t other_size : {std::size_t{0}, std::size_t{7}, std::size_t{64}, size, size + 3}) {
      for (int k = 0; k < 20; ++k) {
        Tokens one(size), other(other_size);
        for (auto& token : one) token = letter(random);
        // Now and then they are alike but for some places.
        for (std::size_t j = 0; j < other_size; ++j) {
          other[j] = k % 2 == 0 && j < size && edit(random) > 0 ? one[j] : letter(random);
        }
        REQUIRE(Pattern(one, 4).distance(other) == by_table(one, other));
      }
    }
  }
}

TEST_CASE("similarities are rounded as numpy rounds them to float32") {
  CHECK(similarity(0, 0, 0) == 1.0F);
  CHECK(similarity(3, 3, 0) == 0.0F);
  CHECK(similarity(1, 3, 2) == 0.6666667F);
  CHECK(similarity(1, 3, 3) != 1.0F - 1.0F / 3.0F);  // rounded once, at the end
}

TEST_CASE("prototypes are like the source and like what is missing") {
  const Pool pool(small_pool().bytes(), 2, 10);  // sources 5, 6, 5 6, 6 6
  const Retrieval retrieval(pool, 10);
  Retrieval::Known known;
  using Rows = std::vector<std::int64_t>;
  CHECK(retrieval.choices({5, 5, 6}, known) == Rows{0, 1});     // 5 6 is nearer, and lacks nothing
  CHECK(retrieval.choices({6, 6, 6}, known) == Rows{0, 1});     // so does 6 6
  CHECK(retrieval.choices({5, 6, 6, 9}, known) == Rows{2, 0});  // 6 6 is as near; nothing is like 9
  CHECK(retrieval.choices({7}, known) == Rows{0, 0});
  CHECK(known.size() == 3);  // what is missing: 6 twice, 9 and 7
}

TEST_CASE("sums of probabilities given as logarithms") {
  CHECK(log_of_sum(-1, -1) == doctest::Approx(-1 + std::log(2.0)));
  CHECK(log_of_sum(-1, -3) == doctest::Approx(std::log(std::exp(-1.0) + std::exp(-3.0))));
  CHECK(log_of_sum(-3, -1) == log_of_sum(-1, -3));
  CHECK(log_of_sum(-5000, -1) == -1);
}
