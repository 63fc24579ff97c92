#include <doctest/doctest.h>

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
  auto bias = matrix(columns);
  bias.resize(static_cast<std::size_t>(rounded_up(columns, COLUMNS<Real>)));
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
  for (const std::int64_t rows : {1, 12, 14}) {
    for (const std::int64_t depth : {1, 4, 31, 300}) {
      for (const std::int64_t columns : {1, 32, 45}) {
        std::mt19937 random(2);
        const auto size = [](std::int64_t count) { return static_cast<std::size_t>(count); };
        std::vector<std::int8_t> weights(size(depth * columns));
        for (auto& weight : weights) weight = static_cast<std::int8_t>(static_cast<int>(random() % 129) - 64);
        std::vector<float> a(size(rows * depth)), levels(size(depth)), scales(size(columns));
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

}  // namespace
}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"

namespace compgen::INSTRUCTIONS {

TEST_CASE("products are right for every size that does not fit the tiles") {
  INFO("with " COMPGEN_TEXT(INSTRUCTIONS));
  if (!has_instructions(COMPGEN_TEXT(INSTRUCTIONS))) return;
  for (const std::int64_t rows : {1, 2, 3, 5, 12, 13, 30}) {
    for (const std::int64_t depth : {1, 7, 512, 513, 1100}) {
      for (const std::int64_t columns : {1, 16, 31, 32, 65}) {
        check<float>(rows, depth, columns);
        check<double>(rows, depth, columns);
      }
    }
  }
}

TEST_CASE("products in integers round to levels, and add exactly") {
  INFO("with " COMPGEN_TEXT(INSTRUCTIONS));
  if (has_instructions(COMPGEN_TEXT(INSTRUCTIONS))) check_integers();
}

}  // namespace compgen::INSTRUCTIONS
