#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "errors.h"
#include "ways.h"

using namespace compgen;

namespace {

const Grammar& tiny() {
  static const Grammar grammar("NT_1 and NT_2 ### NT_2 NT_1 NT_2\na ### A\nb ### B\n");  // in this order
  return grammar;
}

Weights weights(double temperature = 1, double bias = 0) {
  const double e = std::log(3);
  return Weights(tiny(), 2, {0, e, 0, 0, 9, 0}, {0, 0, 0, e, 0, 0}, temperature, bias, 1);
}

}  // namespace

TEST_CASE("weights are the sum over states of shares") {
  const Weights found = weights();
  CHECK(found.of(0, 0) == doctest::Approx(std::log(0.25 / 3 + 0.75 * 0.6)));
  CHECK(found.of(1, 2) == doctest::Approx(std::log(0.5 / 3 + 0.5 * 0.2)));
  CHECK(weights(0.5).of(0, 0) == doctest::Approx(std::log(0.1 / 3 + 0.9 * 9 / 11)));
  CHECK(weights(1, std::log(2)).of(1, 0) == doctest::Approx(std::log(0.5 * 0.5 + 0.5 * 0.75)));
}

TEST_CASE("a weight too small for a product of shares is what its logarithm says") {
  const Weights found(tiny(), 1, {0, 0, 0}, {0, -2000, -3000}, 1, 0, 1);
  CHECK(found.of(0, 2) == doctest::Approx(-3000));
  CHECK_THROWS_AS(Weights(tiny(), 1, {1e300, 0, 0}, {0, 0, 0}, 1e-300, 0, 1), UserError);
}

TEST_CASE("ways are drawn by their shares, and those not allowed never") {
  const Ways ways(tiny(), nullptr);
  CHECK(ways.names() == 1);
  CHECK(ways.below == std::vector<std::int32_t>{0, 0, -1, -1, -1, -1});
  const Weights found = weights();
  const WayChoice any(ways, found, [](std::int64_t) { return true; });
  const WayChoice closed(ways, found, [](std::int64_t way) { return way > 0; });
  const WayChoice none(ways, found, [](std::int64_t) { return false; });
  WayChoice::Cache cache(2);
  CHECK(any.draw(0, 0, 0.2, 0.3, cache) == 0);  // the first state, a quarter; the first of three rules
  CHECK(any.draw(0, 0, 0.2, 0.99, cache) == 2);
  CHECK(any.draw(0, 0, 0.3, 0.59, cache) == 0);  // the second state, in which the first rule weighs 3 of 5
  CHECK(any.draw(0, 0, 0.3, 0.61, cache) == 1);
  CHECK(closed.draw(0, 0, 0.999, 0, cache) == 1);
  CHECK(none.draw(0, 0, 0.5, 0.5, cache) == -1);
}

TEST_CASE("a rule's weight is divided among its ways, which are sorted by name") {
  const TargetGrammar targets("ROOT => ##A ##A ##A\nROOT => ##B ##B ##B\nA => A\nB => B\nB => A\n");
  const Ways ways(tiny(), &targets);
  CHECK(ways.names() == 3);
  CHECK(ways.starts == std::vector<std::int64_t>{0, 2, 3, 5});
  CHECK(ways.rule == std::vector<std::int32_t>{0, 0, 1, 1, 2});
  CHECK(ways.below == std::vector<std::int32_t>{1, 1, 2, 2, -1, -1, -1, -1, -1, -1});
  CHECK(ways.share == std::vector<double>{0.5, 0.5, 1, 1, 1});
}
