#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "functions.h"
#include "instructions.h"
#include "sums.h"

#define COMPGEN_TEXT_OF(name) #name
#define COMPGEN_TEXT(name) COMPGEN_TEXT_OF(name)

#include "begin_instructions.h"

// This file is compiled for each instruction set, as the sums are.
namespace compgen::INSTRUCTIONS {
namespace {

// The weighted sum of rows of whole numbers, each with one of two others, for which any order of adding is exact.
template <class Real>
void check_sum(std::int64_t count, std::int64_t width) {
  CAPTURE(count);
  CAPTURE(width);
  std::mt19937 random(4);
  const auto numbers = [&random](std::int64_t size) {
    std::vector<Real> values(static_cast<std::size_t>(size));
    for (auto& value : values) value = static_cast<Real>(static_cast<int>(random() % 19) - 9);
    return values;
  };
  const auto weights = numbers(count), rows = numbers(count * width), others = numbers(2 * width);
  const auto more = [&](std::int64_t row) { return others.data() + row % 2 * width; };
  std::vector<Real> sum(static_cast<std::size_t>(width + 1), Real{7});
  weighted_sum(weights.data(), rows.data(), more, count, width, sum.data());
  for (std::int64_t k = 0; k < width; ++k) {
    Real expected = 0;
    for (std::int64_t row = 0; row < count; ++row) {
      const Real number = rows[static_cast<std::size_t>(row * width + k)] + more(row)[k];
      expected += weights[static_cast<std::size_t>(row)] * number;
    }
    CHECK(sum[static_cast<std::size_t>(k)] == expected);
  }
  CHECK(sum.back() == Real{7});
}

// Units in the last place of float between tanh and its true value, at most.
double worst_tangent() {
  double worst = 0;
  for (int step = -400'000; step <= 400'000; ++step) {
    const float x = static_cast<float>(step) * 5e-5F;
    const double truth = std::tanh(static_cast<double>(x));
    const double unit = std::ldexp(1.0, std::max(std::ilogb(truth == 0 ? 1.0 : truth), -126) - 23);
    worst = std::max(worst, std::abs(static_cast<double>(tangent(x)) - truth) / unit);
  }
  return worst;
}

}  // namespace
}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"

namespace compgen::INSTRUCTIONS {

TEST_CASE("weighted sums are right for every width that does not fit the registers, with " COMPGEN_TEXT(INSTRUCTIONS)) {
  if (!has_instructions(COMPGEN_TEXT(INSTRUCTIONS))) return;
  for (const std::int64_t count : {0, 1, 5}) {
    for (const std::int64_t width : {1, 3, 8, 17, 64, 100, 128, 131}) {
      check_sum<float>(count, width);
      if constexpr (VECTOR_BYTES < 64) check_sum<double>(count, width);
    }
  }
}

TEST_CASE("functions are applied to all numbers, and to none behind their last register, with " COMPGEN_TEXT(INSTRUCTIONS)) {
  if (!has_instructions(COMPGEN_TEXT(INSTRUCTIONS))) return;
  for (const std::int64_t count : {0, 1, 15, 16, 17, 40}) {
    const std::int64_t whole = rounded_up(count, LANES<float>);
    std::vector<float> numbers(static_cast<std::size_t>(whole) + 1, 2.0F);
    apply(numbers.data(), count, [](float one) { return one * one; });
    for (std::int64_t k = 0; k < count; ++k) CHECK(numbers[static_cast<std::size_t>(k)] == 4);
    CHECK(numbers.back() == 2);
  }
}

TEST_CASE("tanh is right to some units in the last place, odd, and at its ends for the largest numbers, with " COMPGEN_TEXT(INSTRUCTIONS)) {
  if (!has_instructions(COMPGEN_TEXT(INSTRUCTIONS))) return;
  CHECK(worst_tangent() < 7);  // 4.2 where a product and a sum round once
  for (const float x : {1e-30F, 1e-3F, 0.5F, 8.0F, 9.5F, 1e30F}) CHECK(tangent(-x) == -tangent(x));
  for (const float x : {9.02F, 1e10F, 3e38F}) CHECK(tangent(x) == doctest::Approx(1.0).epsilon(3e-7));
  CHECK(tangent(0.0F) == 0);
}

}  // namespace compgen::INSTRUCTIONS
