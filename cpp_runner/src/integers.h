// Matrix products in 8-bit integers, for bundles that were exported so (compgen/export/int8.py):
//
//     x W  ~  column_scale * (round(x / feature_scale) @ weights)
//
// Sums are exact, so a row of the product depends on nothing but its own row. The order of data is that of product.h, with
// four numbers in place of one: a processor with VNNI multiplies and adds four bytes in each 32-bit lane at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "product.h"

#if defined(HAS_VNNI)
#include <immintrin.h>
#endif

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {

constexpr std::int64_t FOUR = 4;               // numbers of the inner dimension that lie together
constexpr std::int64_t BYTE_COLUMNS = 32;      // columns of a tile
constexpr std::int64_t MOST_DEPTH = 1 << 15;   // of the inner dimension, so that no sum leaves 32 bits
constexpr int ZERO_LEVEL = 128, LEVELS = 127;  // what stands for 0, and the largest distance from it

// The left factor (M, K), in strips of ROWS rows.
class LeftBytes {
 public:
  void shape(std::int64_t rows, std::int64_t depth) {
    rows_ = rows, depth_ = rounded_up(depth, FOUR);
    data_.assign(static_cast<std::size_t>(rounded_up(rows, ROWS) * depth_), ZERO_LEVEL);
  }

  // Sets columns first .. first + width - 1, as Left::put does; `levels` (K) is how many levels there are to 1.
  template <class Real>
  void put(std::int64_t first, const Real* from, std::int64_t width, std::int64_t stride, const Real* levels) {
    row_.resize(static_cast<std::size_t>(width));
    std::uint8_t* const levels_of_row = row_.data();
    for (std::int64_t row = 0; row < rows_; ++row) {
      const Real* const numbers = from + row * stride;
#pragma GCC ivdep
      for (std::int64_t k = 0; k < width; ++k) {
        Real level = std::nearbyint(numbers[k] * levels[first + k]);  // halves to the even, as ONNX has it
        level = level > Real{LEVELS} ? Real{LEVELS} : level;
        level = level < -Real{ZERO_LEVEL} ? -Real{ZERO_LEVEL} : level;
        levels_of_row[k] = static_cast<std::uint8_t>(static_cast<int>(level) + ZERO_LEVEL);
      }
      std::uint8_t* const strip = data_.data() + row / ROWS * ROWS * depth_ + row % ROWS * FOUR;
      std::int64_t k = 0;
      if (first % FOUR == 0) {
        for (; k + FOUR <= width; k += FOUR) std::memcpy(strip + (first + k) * ROWS, levels_of_row + k, FOUR);
      }
      for (; k < width; ++k) strip[(first + k) / FOUR * FOUR * ROWS + (first + k) % FOUR] = levels_of_row[k];
    }
  }

  std::int64_t rows() const { return rows_; }
  const std::uint8_t* strip(std::int64_t row) const { return data_.data() + row * depth_; }

 private:
  std::int64_t rows_ = 0, depth_ = 0;
  std::vector<std::uint8_t> data_, row_;
};

// The right factor (K, N), in panels of BYTE_COLUMNS columns.
class RightBytes {
 public:
  RightBytes() = default;
  RightBytes(const std::vector<std::int8_t>& matrix, std::vector<float> scales, std::int64_t depth,
             std::int64_t columns)
      : depth_(rounded_up(depth, FOUR)), columns_(columns), scales_(std::move(scales)) {
    data_.assign(static_cast<std::size_t>(depth_ * rounded_up(columns, BYTE_COLUMNS)), 0);
    offsets_.assign(static_cast<std::size_t>(columns), 0);
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::int8_t value = matrix[static_cast<std::size_t>(k * columns + column)];
        const std::int64_t panel = column / BYTE_COLUMNS * BYTE_COLUMNS;
        data_[static_cast<std::size_t>(panel * depth_ + k / FOUR * FOUR * BYTE_COLUMNS + (column - panel) * FOUR +
                                       k % FOUR)] = value;
        offsets_[static_cast<std::size_t>(column)] += ZERO_LEVEL * value;
      }
    }
  }

  // Writes the product to a matrix whose rows are `stride` apart.
  template <class Real>
  void product(const LeftBytes& left, Real* out, std::int64_t stride) const {
    for (std::int64_t panel = 0; panel < columns_; panel += BYTE_COLUMNS) {
      const std::int64_t columns = std::min(BYTE_COLUMNS, columns_ - panel);
      const std::int8_t* const b = data_.data() + panel * depth_;
      for (std::int64_t strip = 0; strip < left.rows(); strip += ROWS) {
        std::int32_t sums[ROWS][BYTE_COLUMNS];
        tile(depth_, left.strip(strip), b, sums);
        for (std::int64_t row = 0; row < std::min(ROWS, left.rows() - strip); ++row) {
          Real* const to = out + (strip + row) * stride + panel;
          for (std::int64_t column = 0; column < columns; ++column) {
            const auto at = static_cast<std::size_t>(panel + column);
            to[column] = static_cast<Real>(static_cast<float>(sums[row][column] - offsets_[at]) * scales_[at]);
          }
        }
      }
    }
  }

 private:
#if defined(HAS_VNNI)
  static void tile(std::int64_t depth, const std::uint8_t* a, const std::int8_t* b,
                   std::int32_t (&out)[ROWS][BYTE_COLUMNS]) {
    __m512i sums[ROWS][2];
    for (auto& row : sums) row[0] = row[1] = _mm512_setzero_si512();
    for (std::int64_t k = 0; k < depth; k += FOUR, a += FOUR * ROWS, b += FOUR * BYTE_COLUMNS) {
      const __m512i first = _mm512_loadu_si512(b), second = _mm512_loadu_si512(b + 64);
#pragma GCC unroll 12
      for (std::int64_t row = 0; row < ROWS; ++row) {
        std::int32_t four;
        std::memcpy(&four, a + row * FOUR, sizeof(four));
        const __m512i numbers = _mm512_set1_epi32(four);
        sums[row][0] = _mm512_dpbusd_epi32(sums[row][0], numbers, first);
        sums[row][1] = _mm512_dpbusd_epi32(sums[row][1], numbers, second);
      }
    }
    std::memcpy(out, sums, sizeof(out));
  }
#else
  static void tile(std::int64_t depth, const std::uint8_t* a, const std::int8_t* b,
                   std::int32_t (&out)[ROWS][BYTE_COLUMNS]) {
    std::memset(out, 0, sizeof(out));
    for (std::int64_t k = 0; k < depth; k += FOUR, a += FOUR * ROWS, b += FOUR * BYTE_COLUMNS) {
      for (std::int64_t row = 0; row < ROWS; ++row) {
        for (std::int64_t column = 0; column < BYTE_COLUMNS; ++column) {
          for (std::int64_t i = 0; i < FOUR; ++i) out[row][column] += a[row * FOUR + i] * b[column * FOUR + i];
        }
      }
    }
  }
#endif

  std::int64_t depth_ = 0, columns_ = 0;
  std::vector<std::int8_t> data_;
  std::vector<std::int32_t> offsets_;  // (N) what the zero level adds to a sum
  std::vector<float> scales_;          // (N)
};

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
