// A weight matrix of the decoding step, in the precision that its bundle has: of Real, or in 8-bit integers.
#pragma once

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

template <class Real>
class Factor {
 public:
  Factor() = default;
  // The array `name` (K, N), or in its place `name`.int8 with `name`.levels (K) and `name`.scales (N). Throws UserError.
  Factor(const Safetensors& file, const std::string& name, std::int64_t depth, std::int64_t columns) : depth_(depth) {
    if (file.has(name + ".int8")) {
      if (depth > MOST_DEPTH) throw UserError(name + " is too large for integers");
      levels_ = file.reals<Real>(name + ".levels", {depth});
      auto scales = file.reals<float>(name + ".scales", {columns});
      bytes_ = RightBytes(file.bytes(name + ".int8", {depth, columns}), std::move(scales), depth, columns);
    } else {
      numbers_ = Right<Real>(file.reals<Real>(name, {depth, columns}).data(), depth, columns);
    }
  }

  void shape(Operand<Real>& left, std::int64_t rows) const {
    levels_.empty() ? left.numbers.shape(rows, depth_) : left.bytes.shape(rows, depth_);
  }
  // As Left::put.
  void put(Operand<Real>& left, std::int64_t first, const Real* from, std::int64_t width, std::int64_t stride) const {
    if (levels_.empty()) {
      left.numbers.put(first, from, width, stride);
    } else {
      left.bytes.put(first, from, width, stride, levels_.data());
    }
  }
  // As Right::product.
  void product(const Operand<Real>& left, Real* out, std::int64_t stride) const {
    levels_.empty() ? numbers_.product(left.numbers, out, stride) : bytes_.product(left.bytes, out, stride);
  }

 private:
  std::int64_t depth_ = 0;
  Right<Real> numbers_;
  RightBytes bytes_;
  std::vector<Real> levels_;  // (K), where the matrix is in integers
};

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
