#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "instructions.h"
#include "integers.h"
#include "product.h"

#define COMPGEN_TEXT_OF(name) #name
#define COMPGEN_TEXT(name) COMPGEN_TEXT_OF(name)

#include "begin_instructions.h"

// This file is compiled for each instruction set, as the products are.
namespace compgen::INSTRUCTIONS {
namespace {

// The product of whole numbers, for which any order of adding is exact.
template <class Real>
void check(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  CAPTURE(rows);
  CAPTURE(depth);
  CAPTURE(columns);
  std::mt19937 random(1);
  const auto matrix = [&random](std::int64_t size) {
    std::vector<Real> values(static_cast<std::size_t>(size));
    for (auto& value : values) value = static_cast<Real>(static_cast<int>(random() % 19) - 9);
    return values;
  };
  const auto a = matrix(rows * depth), b = matrix(depth * columns);
  const Right<Real> right(b.data(), depth, columns);
  Left<Real> left;
  left.shape(rows, depth);
  const std::int64_t middle = depth / 2, stride = columns + 3;
  left.put(0, a.data(), middle, depth);
  left.put(middle, a.data() + middle, depth - middle, depth);
  std::vector<Real> out(static_cast<std::size_t>(rows * stride), Real{-1}), expected = out;
  right.product(left, out.data(), stride);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      Real sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        sum += a[static_cast<std::size_t>(row * depth + k)] * b[static_cast<std::size_t>(k * columns + column)];
      }
      expected[static_cast<std::size_t>(row * stride + column)] = sum;
    }
  }
  CHECK(out == expected);  // also between the rows, where nothing may be written
  std::vector<Real> columns_of_b(b.size());
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t column = 0; column < columns; ++column) {
      columns_of_b[static_cast<std::size_t>(column * depth + k)] = b[static_cast<std::size_t>(k * columns + column)];
    }
  }
  Right<Real> transposed(depth, columns);
  for (std::int64_t panel = 0; panel < transposed.panels(); ++panel) transposed.put_transposed(panel, columns_of_b.data());
  std::vector<Real> again(out.size(), Real{-1});
  transposed.product(left, again.data(), stride);
  CHECK(again == expected);
  auto bias = matrix(columns);
  bias.resize(static_cast<std::size_t>(rounded_up(columns, LANES<Real>)));
  right.product(left, out.data(), stride, bias.data(), true);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      Real& sum = expected[static_cast<std::size_t>(row * stride + column)];
      sum += sum + bias[static_cast<std::size_t>(column)];
    }
  }
  CHECK(out == expected);
}

void check_integers() {
  for (const std::int64_t rows : {0, 1, 9, 12, 14, 17, 33, 50}) {
    for (const std::int64_t depth : {1, 4, 31, 64, 300}) {
      for (const std::int64_t columns : {1, 32, 45, 49}) {
        std::mt19937 random(2);
        const auto size = [](std::int64_t count) { return static_cast<std::size_t>(count); };
        Aligned<std::int8_t> weights(size(depth * columns));
        for (auto& weight : weights) weight = static_cast<std::int8_t>(static_cast<int>(random() % 129) - 64);
        std::vector<float> a(size(rows * depth)), levels(size(depth));
        Aligned<float> scales(size(columns));
        for (auto& value : a) value = static_cast<float>(static_cast<int>(random() % 601) - 300) / 4;
        for (auto& level : levels) level = static_cast<float>(1 + random() % 2);
        for (auto& scale : scales) scale = static_cast<float>(1 + random() % 4) / 8;
        const RightBytes right(weights, scales, depth, columns);
        LeftBytes left;
        left.shape(rows, depth);
        const std::int64_t middle = depth / 2;
        left.put(0, a.data(), middle, depth, levels.data());
        left.put(middle, a.data() + middle, depth - middle, depth, levels.data());
        std::vector<float> out(size(rows * columns));
        right.product(left, out.data(), columns);
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t column = 0; column < columns; ++column) {
            double sum = 0;
            for (std::int64_t k = 0; k < depth; ++k) {
              const float exact = a[size(row * depth + k)] * levels[size(k)];  // halves and quarters are exact
              const double level = std::clamp(std::nearbyint(static_cast<double>(exact)), -128.0, 127.0);
              sum += level * weights[size(k * columns + column)];
            }
            CHECK(out[size(row * columns + column)] == static_cast<float>(sum * static_cast<double>(scales[size(column)])));
          }
        }
      }
    }
  }
}

// Rows whose largest number is 127 or 254 have levels of 1 and 2; the product begins with a bias, and is added, or neither.
void check_rows() {
  for (const std::int64_t rows : {1, 2, 3, 7, 13}) {
    for (const std::int64_t columns : {1, 33, 64}) {
      const std::int64_t depth = 6;
      std::mt19937 random(3);
      const auto size = [](std::int64_t count) { return static_cast<std::size_t>(count); };
      Aligned<std::int8_t> weights(size(depth * columns));
      for (auto& weight : weights) weight = static_cast<std::int8_t>(static_cast<int>(random() % 129) - 64);
      std::vector<float> a(size(rows * depth)), bias(size(columns)), out(size(rows * columns), 3.0F);
      const Aligned<float> scales(size(columns), 0.25F);
      for (auto& value : bias) value = static_cast<float>(random() % 9);
      const auto level = [](std::int64_t row) { return row % 2 == 0 ? 1.0F : 2.0F; };
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t k = 0; k < depth; ++k) {
          const float number = k == row % depth ? -127.0F : static_cast<float>(static_cast<int>(random() % 201) - 100);
          a[size(row * depth + k)] = number * level(row);
        }
      }
      const RightBytes right(weights, scales, depth, columns);
      LeftBytes left;
      left.shape(rows, depth);
      left.put_rows(a.data(), depth);
      right.product(left, out.data(), columns, bias.data(), true);
      std::vector<float> alone(out.size());
      right.product(left, alone.data(), columns);
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          float sum = 0;
          for (std::int64_t k = 0; k < depth; ++k) sum += a[size(row * depth + k)] * weights[size(k * columns + column)];
          CHECK(out[size(row * columns + column)] == doctest::Approx(3 + bias[size(column)] + sum / 4));
          CHECK(alone[size(row * columns + column)] == doctest::Approx(sum / 4));
        }
      }
    }
  }
  LeftBytes nothing;  // a row of zeros has no largest number
  nothing.shape(1, 4);
  const float zeros[4] = {};
  nothing.put_rows(zeros, 4);
  for (int k = 0; k < 4; ++k) CHECK(nothing.row(0)[k] == ZERO_LEVEL);
  CHECK(nothing.scales()[0] < 1e-30F);
}

// What a network that overflows gives is rounded, too, by casts that are defined, and changes no other row.
template <class Real>
void check_overflow() {
  constexpr std::int64_t DEPTH = 40;
  using Limits = std::numeric_limits<Real>;
  const Real numbers[] = {Limits::infinity(), -Limits::infinity(), Limits::max(), -Limits::max(), Limits::quiet_NaN()};
  std::vector<Real> a(3 * DEPTH, Real{2});
  for (std::int64_t k = 0; k < DEPTH; ++k) a[static_cast<std::size_t>(DEPTH + k)] = numbers[k % 5];
  const std::vector<Real> levels(DEPTH, Real{80});
  LeftBytes left;
  left.shape(3, DEPTH);
  const auto level = [&left](std::int64_t row, std::int64_t k) {
    return left.row(row)[k] - ZERO_LEVEL;
  };
  left.put(0, a.data(), DEPTH, DEPTH, levels.data());
  for (std::int64_t k = 0; k < DEPTH; ++k) {
    CHECK(level(0, k) == LEVELS);
    CHECK(level(2, k) == LEVELS);
    if (k % 5 < 4) CHECK(level(1, k) == (k % 5 % 2 == 0 ? LEVELS : -ZERO_LEVEL));
  }
  left.put_rows(a.data(), DEPTH);
  for (std::int64_t k = 0; k < DEPTH; ++k) {
    CHECK(level(0, k) == LEVELS);
    CHECK(level(2, k) == LEVELS);
  }
}

}  // namespace
}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"

namespace compgen::INSTRUCTIONS {

TEST_CASE("products are right for every size that does not fit the tiles, with " COMPGEN_TEXT(INSTRUCTIONS)) {
  if (!has_instructions(COMPGEN_TEXT(INSTRUCTIONS))) return;
  for (const std::int64_t rows : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 30}) {
    for (const std::int64_t depth : {0, 1, 7, 512, 513, 1100}) {
      for (const std::int64_t columns : {1, 16, 31, 32, 48, 65, 81}) {
        check<float>(rows, depth, columns);
        if constexpr (VECTOR_BYTES < 64) check<double>(rows, depth, columns);
      }
    }
  }
}

TEST_CASE("products in integers round to levels, and add exactly, with " COMPGEN_TEXT(INSTRUCTIONS)) {
  if (has_instructions(COMPGEN_TEXT(INSTRUCTIONS))) check_integers();
}

TEST_CASE("products in integers scale each row by its largest number, with " COMPGEN_TEXT(INSTRUCTIONS)) {
  if (has_instructions(COMPGEN_TEXT(INSTRUCTIONS))) check_rows();
}

TEST_CASE("products in integers take numbers that are none, with " COMPGEN_TEXT(INSTRUCTIONS)) {
  if (!has_instructions(COMPGEN_TEXT(INSTRUCTIONS))) return;
  check_overflow<float>();
  if constexpr (VECTOR_BYTES < 64) check_overflow<double>();
}

}  // namespace compgen::INSTRUCTIONS
