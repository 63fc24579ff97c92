// A weight matrix of the decoding step, in the precision that its bundle has: of Real, or in 8-bit integers.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "errors.h"
#include "integers.h"
#include "safetensors.h"

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {

// What a weight matrix multiplies.
template <class Real>
struct Operand {
  Left<Real> numbers;
  LeftBytes bytes;
};

// In integers, what rows of the left factor are rounded by: a scale a feature, `name`.levels, or a scale a row.
enum class Scales { OF_FEATURES, OF_ROWS };

template <class Real>
class Factor {
 public:
  Factor() = default;
  // The array `name` (K, ...), of which all sizes but the first are columns; or in its place `name`.int8 with `name`.scales
  // (N) and, if they are of features, `name`.levels (K). Throws UserError.
  Factor(const Safetensors& file, const std::string& name, const std::vector<std::int64_t>& sizes, Scales scales)
      : depth_(sizes[0]), integers_(file.has(name + ".int8")) {
    const std::int64_t columns = std::accumulate(sizes.begin() + 1, sizes.end(), std::int64_t{1}, std::multiplies<>());
    if (!integers_) {
      numbers_ = Right<Real>(file.reals<Real>(name, sizes).data(), depth_, columns);
      return;
    }
    if (depth_ > MOST_DEPTH) throw UserError(name + " is too large for integers");
    if (scales == Scales::OF_FEATURES) levels_ = file.reals<Real>(name + ".levels", {depth_});
    const auto integers = file.bytes(name + ".int8", sizes);
    if (std::any_of(integers.begin(), integers.end(), [](int one) { return std::abs(one) > MOST_WEIGHT; })) {
      throw UserError(name + ".int8 has numbers beyond " + std::to_string(MOST_WEIGHT));
    }
    auto of_columns = file.reals<float>(name + ".scales", {columns});
    bytes_ = RightBytes(integers, std::move(of_columns), depth_, columns);
  }

  void shape(Operand<Real>& left, std::int64_t rows) const {
    integers_ ? left.bytes.shape(rows, depth_) : left.numbers.shape(rows, depth_);
  }
  // As Left::put; by scales of rows, all columns of rows that lie one after another.
  void put(Operand<Real>& left, std::int64_t first, const Real* from, std::int64_t width, std::int64_t stride) const {
    if (!integers_) {
      left.numbers.put(first, from, width, stride);
    } else if (levels_.empty()) {
      left.bytes.put_rows(from, width);
    } else {
      left.bytes.put(first, from, width, stride, levels_.data());
    }
  }
  // As Right::product.
  void product(const Operand<Real>& left, Real* out, std::int64_t stride, const Real* bias = nullptr,
               bool add = false) const {
    integers_ ? bytes_.product(left.bytes, out, stride, bias, add)
              : numbers_.product(left.numbers, out, stride, bias, add);
  }

 private:
  std::int64_t depth_ = 0;
  bool integers_ = false;
  Right<Real> numbers_;
  RightBytes bytes_;
  Aligned<Real> levels_;  // (K)
};

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
