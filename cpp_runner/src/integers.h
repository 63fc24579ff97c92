// Matrix products in 8-bit integers, for bundles that were exported so (compgen/export/integers.py):
//
//     x W  ~  column_scale * (round(x / s) @ weights)
//
// where s has a number for each feature of x, or one for each row. Sums are exact, so a row of the product depends on
// nothing but its own row. Tiles and panels are those of product.h, with four numbers in place of one: a processor with
// VNNI multiplies and adds four bytes in each 32-bit lane at once, one with AVX2 in three instructions. The left factor
// is rounded into strips of ROWS rows, whose bytes lie in the order in which a tile reads them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "product.h"

#if defined(HAS_AVX2) || defined(HAS_VNNI)
#include <immintrin.h>
#endif

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {

constexpr std::int64_t FOUR = 4;               // numbers of the inner dimension that lie together
constexpr std::int64_t BYTE_COLUMNS = 16 * VECTORS;  // columns of a tile
constexpr std::int64_t MOST_DEPTH = 1 << 15;   // of the inner dimension, so that no sum leaves 32 bits
constexpr int MOST_WEIGHT = 64;                // of a matrix, so that no sum of two products leaves 16 bits
constexpr int ZERO_LEVEL = 128, LEVELS = 127;  // what stands for 0, and the largest distance from it
constexpr double SMALLEST = 1e-30;             // the largest number of a row that is scaled; less counts as nothing

// The left factor (M, K), in strips of ROWS rows: within a strip, four columns of each row lie together.
class LeftBytes {
 public:
  void shape(std::int64_t rows, std::int64_t depth) {
    rows_ = rows, depth_ = rounded_up(depth, FOUR);
    data_.assign(static_cast<std::size_t>(rounded_up(rows, ROWS) * depth_), ZERO_LEVEL);
    scales_.assign(static_cast<std::size_t>(rows), 1.0F);
  }

  // Sets columns first .. first + width - 1, as Left::put does; `levels` (K) is how many levels there are to 1.
  template <class Real>
  void put(std::int64_t first, const Real* from, std::int64_t width, std::int64_t stride, const Real* levels) {
    for (std::int64_t row = 0; row < rows_; ++row) {
      put_row(row, first, from + row * stride, width, [&](std::int64_t k) { return levels[first + k]; });
    }
  }

  // Sets all columns from rows that lie one after another, each by its largest number.
  template <class Real>
  void put_rows(const Real* from, std::int64_t width) {
    for (std::int64_t row = 0; row < rows_; ++row, from += width) {
      Real largest = static_cast<Real>(SMALLEST);
      for (std::int64_t k = 0; k < width; ++k) largest = std::max(largest, std::abs(from[k]));
      const Real level = Real{LEVELS} / largest;
      put_row(row, 0, from, width, [level](std::int64_t) { return level; });
      scales_[static_cast<std::size_t>(row)] = static_cast<float>(largest * (Real{1} / Real{LEVELS}));
    }
  }

  std::int64_t rows() const { return rows_; }
  const std::uint8_t* strip(std::int64_t row) const { return data_.data() + row * depth_; }
  float scale(std::int64_t row) const { return scales_[static_cast<std::size_t>(row)]; }

 private:
  // Sets some columns of a row; `level` gives how many levels there are to 1 in each.
  template <class Real, class Level>
  void put_row(std::int64_t row, std::int64_t first, const Real* numbers, std::int64_t width, const Level& level) {
    row_.resize(static_cast<std::size_t>(width));
    std::uint8_t* const levels = row_.data();
#pragma GCC ivdep
    for (std::int64_t k = 0; k < width; ++k) {
      Real to = std::nearbyint(numbers[k] * level(k));  // halves to the even, as ONNX has it
      to = to < Real{LEVELS} ? to : Real{LEVELS};  // what is no number becomes one
      to = to > -Real{ZERO_LEVEL} ? to : -Real{ZERO_LEVEL};
      levels[k] = static_cast<std::uint8_t>(static_cast<int>(to) + ZERO_LEVEL);
    }
    std::uint8_t* const strip = data_.data() + row / ROWS * ROWS * depth_ + row % ROWS * FOUR;
    std::int64_t k = 0;
    if (first % FOUR == 0) {
      for (; k + FOUR <= width; k += FOUR) std::memcpy(strip + (first + k) * ROWS, levels + k, FOUR);
    }
    for (; k < width; ++k) strip[(first + k) / FOUR * FOUR * ROWS + (first + k) % FOUR] = levels[k];
  }

  std::int64_t rows_ = 0, depth_ = 0;
  std::vector<std::uint8_t> data_, row_;
  std::vector<float> scales_;  // (M), what a row's products are multiplied by
};

// The right factor (K, N), in panels of BYTE_COLUMNS columns.
class RightBytes {
 public:
  RightBytes() = default;
  RightBytes(const Aligned<std::int8_t>& matrix, Aligned<float> scales, std::int64_t depth,
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

  // As Right::product; `bias` (N).
  template <class Real>
  void product(const LeftBytes& left, Real* out, std::int64_t stride, const Real* bias = nullptr,
               bool add = false) const {
    for (std::int64_t panel = 0; panel < columns_; panel += BYTE_COLUMNS) {
      const std::int8_t* const b = data_.data() + panel * depth_;
      for (std::int64_t strip = 0; strip < left.rows(); strip += ROWS) {
        const std::int64_t rows = std::min(ROWS, left.rows() - strip);
        std::int32_t sums[ROWS][BYTE_COLUMNS];
        any(depth_, left.strip(strip), b, sums, rows);
        for (std::int64_t row = 0; row < rows; ++row) {
          finish(sums[row], panel, left.scale(strip + row), out + (strip + row) * stride, bias, add);
        }
      }
    }
  }

 private:
  // Writes the numbers of a panel's sums to a row.
  template <class Real>
  void finish(const std::int32_t* sums, std::int64_t panel, float scale, Real* out, const Real* bias, bool add) const {
    const std::int64_t last = std::min(columns_, panel + BYTE_COLUMNS);
    const std::int32_t* const offsets = offsets_.data();
    const float* const scales = scales_.data();
#pragma GCC ivdep
    for (std::int64_t column = panel; column < last; ++column) {
      const float number = static_cast<float>(sums[column - panel] - offsets[column]) * scales[column] * scale;
      const Real before = (add ? out[column] : Real{0}) + (bias ? bias[column] : Real{0});
      out[column] = before + static_cast<Real>(number);
    }
  }

  using Sums = std::int32_t[ROWS][BYTE_COLUMNS];

  // A tile of as many rows, or a few more: each strip has room for ROWS, and sums beyond `rows` are not used.
  static void any(std::int64_t depth, const std::uint8_t* a, const std::int8_t* b, Sums& out, std::int64_t rows) {
    if (rows == 1) return tile<1>(depth, a, b, out);
    if (rows == 2) return tile<2>(depth, a, b, out);
    if (rows <= 4) return tile<4>(depth, a, b, out);
    if constexpr (ROWS > 8) {
      if (rows <= 8) return tile<8>(depth, a, b, out);
    }
    tile<ROWS>(depth, a, b, out);
  }

#if defined(HAS_VNNI)
  template <std::int64_t N>
  static void tile(std::int64_t depth, const std::uint8_t* a, const std::int8_t* b, Sums& out) {
    __m512i sums[N][VECTORS];
    for (auto& row : sums) {
      for (auto& sum : row) sum = _mm512_setzero_si512();
    }
    for (std::int64_t k = 0; k < depth; k += FOUR, a += FOUR * ROWS, b += FOUR * BYTE_COLUMNS) {
      __m512i weights[VECTORS];
#pragma GCC unroll 3
      for (std::int64_t i = 0; i < VECTORS; ++i) weights[i] = _mm512_loadu_si512(b + 64 * i);
#pragma GCC unroll 12
      for (std::int64_t row = 0; row < N; ++row) {
        std::int32_t four;
        std::memcpy(&four, a + row * FOUR, sizeof(four));
        const __m512i numbers = _mm512_set1_epi32(four);
#pragma GCC unroll 3
        for (std::int64_t i = 0; i < VECTORS; ++i) {
          sums[row][i] = _mm512_dpbusd_epi32(sums[row][i], numbers, weights[i]);
        }
      }
    }
    std::memcpy(out, sums, sizeof(sums));
  }
#elif defined(HAS_AVX2)
  // 16 columns at a time, so that the sums stay in registers. Sums of two products fit 16 bits (integers.py).
  template <std::int64_t N>
  static void tile(std::int64_t depth, const std::uint8_t* a, const std::int8_t* b, Sums& out) {
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::int64_t part = 0; part < VECTORS; ++part) {
      __m256i sums[N][2];
      for (auto& row : sums) row[0] = row[1] = _mm256_setzero_si256();
      const std::uint8_t* numbers = a;
      const auto* weights = reinterpret_cast<const __m256i*>(b) + 2 * part;
      for (std::int64_t k = 0; k < depth; k += FOUR, numbers += FOUR * ROWS, weights += 2 * VECTORS) {
        const __m256i first = _mm256_loadu_si256(weights), second = _mm256_loadu_si256(weights + 1);
#pragma GCC unroll 12
        for (std::int64_t row = 0; row < N; ++row) {
          std::int32_t four;
          std::memcpy(&four, numbers + row * FOUR, sizeof(four));
          const __m256i left = _mm256_set1_epi32(four);
          const auto added = [&](__m256i right) { return _mm256_madd_epi16(_mm256_maddubs_epi16(left, right), ones); };
          sums[row][0] = _mm256_add_epi32(sums[row][0], added(first));
          sums[row][1] = _mm256_add_epi32(sums[row][1], added(second));
        }
      }
      for (std::int64_t row = 0; row < N; ++row) std::memcpy(out[row] + part * 16, sums[row], sizeof(sums[row]));
    }
  }
#else
  template <std::int64_t N>
  static void tile(std::int64_t depth, const std::uint8_t* a, const std::int8_t* b, Sums& out) {
    std::memset(out, 0, sizeof(out));
    for (std::int64_t k = 0; k < depth; k += FOUR, a += FOUR * ROWS, b += FOUR * BYTE_COLUMNS) {
      for (std::int64_t row = 0; row < N; ++row) {
        for (std::int64_t column = 0; column < BYTE_COLUMNS; ++column) {
          for (std::int64_t i = 0; i < FOUR; ++i) out[row][column] += a[row * FOUR + i] * b[column * FOUR + i];
        }
      }
    }
  }
#endif

  std::int64_t depth_ = 0, columns_ = 0;
  Aligned<std::int8_t> data_;
  Aligned<std::int32_t> offsets_;      // (N) what the zero level adds to a sum
  Aligned<float> scales_;              // (N)
};

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
