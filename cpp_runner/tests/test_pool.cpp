#include <doctest/doctest.h>

#include <set>

#include "errors.h"
#include "pool.h"
#include "pools.h"

using namespace compgen;

TEST_CASE("prototypes are drawn from the tuples of all blocks, and from no others") {
  const Pool pool(small_pool().bytes(), 2, 10);
  CHECK(pool.total() == 5);
  CHECK(pool.longest() == 6);
  CHECK(pool.sequences()[3] == Tokens{6, 6, SEP, 8, EOS});
  std::set<std::vector<std::int64_t>> seen;
  for (std::int64_t sample = 0; sample < 200; ++sample) {
    std::vector<std::int64_t> chosen(2);
    pool.choose(7, sample, chosen.data());
    seen.insert(chosen);
  }
  CHECK(seen == std::set<std::vector<std::int64_t>>{{0, 2}, {1, 2}, {3, 0}, {3, 1}, {3, 2}});
}

TEST_CASE("the tuples that hold a wanted member are drawn from alone") {
  const Pool whole(small_pool().bytes(), 2, 10);
  const auto drawn_with = [&](const std::vector<bool>& wanted) {
    const Pool pool = whole.holding(wanted);
    std::set<std::vector<std::int64_t>> seen;
    for (std::int64_t sample = 0; sample < 200 && pool.total() > 0; ++sample) {
      std::vector<std::int64_t> chosen(2);
      pool.choose(7, sample, chosen.data());
      seen.insert(chosen);
    }
    CHECK(static_cast<std::int64_t>(seen.size()) == pool.total());
    return seen;
  };
  using Tuples = std::set<std::vector<std::int64_t>>;
  CHECK(drawn_with({true, false, false, false}) == Tuples{{0, 2}, {3, 0}});
  CHECK(drawn_with({false, false, true, false}) == Tuples{{0, 2}, {1, 2}, {3, 2}});
  CHECK(drawn_with({false, false, false, true}) == Tuples{{3, 0}, {3, 1}, {3, 2}});
  CHECK(drawn_with({true, true, true, true}).size() == 5);
  CHECK(drawn_with({false, false, false, false}).empty());
}

TEST_CASE("a pool that would make sampling read outside an array is refused") {
  const auto refused = [](const File& file, std::int64_t prototypes = 2, std::int64_t vocabulary = 10) {
    CHECK_THROWS_AS(Pool(file.bytes(), prototypes, vocabulary), UserError);
  };
  refused(small_pool(), 3);
  refused(small_pool(), 2, 8);
  refused(small_pool().add<std::int32_t>("members", "I32", {5}, {0, 1, 2, 4, 0}));
  refused(small_pool().add<std::int64_t>("starts", "I64", {2, 2}, {0, 3, 3, -1}));
  refused(small_pool().add<std::int64_t>("counts", "I64", {2, 2}, {2, 1, 1, 6}));
  refused(small_pool().add<std::int64_t>("counts", "I64", {2, 2}, {2, 0, 1, 3}));
  refused(small_pool().add<float>("members", "F32", {5}, {0, 1, 2, 3, 0}));
  File wide = small_pool();
  wide.header["tokens"]["shape"] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  refused(wide);
  File outside = small_pool();
  outside.header["tokens"]["data_offsets"] = {0, 1 << 20};
  refused(outside);
}

TEST_CASE("a file cut short anywhere is refused") {
  const std::string whole = small_pool().bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CHECK_THROWS_AS(Pool(whole.substr(0, length), 2, 10), UserError);
  }
}
