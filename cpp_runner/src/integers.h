// Matrix products in 8-bit integers, for bundles that were exported so (compgen/export/integers.py):
//
//     x W  ~  column_scale * (round(x / s) @ weights)
//
// where s has a number for each feature of x, or one for each row. Sums are exact, so a row of the product depends on
// nothing but its own row. Tiles, strips and panels are those of product.h, with four numbers in place of one: a
// processor with VNNI multiplies and adds four bytes in each 32-bit lane at once, one with AVX2 in three instructions.
// One with AMX multiplies and adds blocks of up to 16 rows, 64 numbers and 16 columns, in 16 cycles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "product.h"

#if defined(HAS_AVX2) || defined(HAS_VNNI)
#include <immintrin.h>
#endif

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {

constexpr std::int64_t FOUR = 4;               // numbers of the inner dimension that lie together
constexpr std::int64_t GROUP = 16;             // columns that lie together
// The most groups in a panel; the inner dimension is padded to whole stretches; the most rows of a block (see below).
#if defined(HAS_AMX)
constexpr std::int64_t GROUPS = 2, STRETCH = 64, BLOCK_ROWS = 16;
#else
constexpr std::int64_t GROUPS = VECTORS, STRETCH = FOUR, BLOCK_ROWS = 1;
#endif
constexpr std::int64_t MOST_DEPTH = 1 << 15;   // of the inner dimension, so that no sum leaves 32 bits
constexpr int MOST_WEIGHT = 64;                // of a matrix, so that no sum of two products leaves 16 bits
constexpr int ZERO_LEVEL = 128, LEVELS = 127;  // what stands for 0, and the largest distance from it
constexpr std::int64_t FEW = 4;                // rows, which a processor with AMX multiplies faster in registers
constexpr double SMALLEST = 1e-30;             // the largest number of a row that is scaled; less counts as nothing

// The left factor (M, K), rounded to levels.
class LeftBytes {
 public:
  void shape(std::int64_t rows, std::int64_t depth) {
    rows_ = rows, stride_ = rounded_up(depth, STRETCH);  // the weights of what is behind the last column are 0
    if (STRETCH > FOUR) stride_ |= STRETCH;  // an odd number of cache lines, so that the rows of a block can all be cached
    data_.resize(static_cast<std::size_t>((rows + BLOCK_ROWS - 1) * stride_));  // whole blocks are read
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
  std::int64_t stride() const { return stride_; }
  const std::uint8_t* row(std::int64_t number) const { return data_.data() + number * stride_; }
  const float* scales() const { return scales_.data(); }

 private:
  // Sets some columns of a row; `level` gives how many levels there are to 1 in each.
  template <class Real, class Level>
  void put_row(std::int64_t row, std::int64_t first, const Real* numbers, std::int64_t width, const Level& level) {
    std::uint8_t* const levels = data_.data() + row * stride_ + first;
#pragma GCC ivdep
    for (std::int64_t k = 0; k < width; ++k) {
      Real scaled = numbers[k] * level(k);
      scaled = scaled < Real{LEVELS} ? scaled : Real{LEVELS};
      scaled = scaled > -Real{ZERO_LEVEL} ? scaled : -Real{ZERO_LEVEL};
      levels[k] = level_of(scaled);
    }
  }

  // The nearest level, of halves the even one, as ONNX has it. Added to 1.5 times a power of two, a number is rounded so,
  // and its level is the last byte of the sum. A network that overflows has numbers that are none (NaN): they get any
  // level, but a cast of them would be undefined.
  template <class Real>
  static std::uint8_t level_of(Real number) {
    using Bits = std::conditional_t<sizeof(Real) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
    constexpr Real LARGE = Real{3} * static_cast<Real>(std::int64_t{1} << (std::numeric_limits<Real>::digits - 2));
    const Real sum = number + (LARGE + Real{ZERO_LEVEL});
    Bits bits;
    std::memcpy(&bits, &sum, sizeof(bits));
    return static_cast<std::uint8_t>(bits & 0xff);
  }

  std::int64_t rows_ = 0, stride_ = 0;
  Aligned<std::uint8_t> data_;
  std::vector<float> scales_;  // (M), what a row's products are multiplied by
};

// What a tile of sums is computed from: some rows of the left factor, and a panel of the right one. Meanwhile `ahead` is
// prefetched into the second-level cache, `pace` bytes for every four columns of the left factor.
struct Operands {
  const std::uint8_t* left;
  std::int64_t stride;
  const std::int8_t *right, *ahead;
  std::int64_t pace, depth;
};

// Ways to multiply. A tile has up to BLOCKS blocks of up to BLOCK rows: N blocks of `height` rows, and W groups of
// columns. A way is there while products are computed.
#if defined(HAS_AMX)
// Blocks are the processor's tiles: 0 to 3 are sums, 4 and 5 are of the left factor, 6 and 7 of the right one.
class ByTiles {
 public:
  static constexpr std::int64_t BLOCK = BLOCK_ROWS, BLOCKS = 2;

  explicit ByTiles(std::int64_t height) : height_(height) {
    struct alignas(64) {
      std::uint8_t palette = 1, start = 0, reserved[14] = {};
      std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {};
    } sizes;
    for (int tile = 0; tile < 8; ++tile) sizes.rows[tile] = tile < 6 ? static_cast<std::uint8_t>(height) : GROUP;
    _tile_loadconfig(&sizes);
  }
  ~ByTiles() { _tile_release(); }
  ByTiles(const ByTiles&) = delete;
  ByTiles& operator=(const ByTiles&) = delete;

  template <std::int64_t N, std::int64_t W>
  void multiply(Operands of, std::int32_t (&sums)[N * BLOCK][W * GROUP]) const {
    const std::int64_t below = height_ * of.stride, lines = STRETCH / FOUR * of.pace;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::int64_t k = 0; k < of.depth; k += STRETCH) {
      _tile_loadd(6, of.right, FOUR * GROUP * W);
      _tile_loadd(4, of.left, of.stride);
      _tile_dpbusd(0, 4, 6);
      if constexpr (W > 1) {
        _tile_loadd(7, of.right + FOUR * GROUP, FOUR * GROUP * W);
        _tile_dpbusd(1, 4, 7);
      }
      if constexpr (N > 1) {
        _tile_loadd(5, of.left + below, of.stride);
        _tile_dpbusd(2, 5, 6);
        if constexpr (W > 1) _tile_dpbusd(3, 5, 7);
      }
      for (std::int64_t line = 0; line < lines; line += 64) __builtin_prefetch(of.ahead + line, 0, 2);
      of.left += STRETCH, of.right += STRETCH * GROUP * W, of.ahead += lines;
    }
    constexpr std::int64_t STRIDE = sizeof(sums[0]);
    _tile_stored(0, sums[0], STRIDE);
    if constexpr (W > 1) _tile_stored(1, sums[0] + GROUP, STRIDE);
    if constexpr (N > 1) _tile_stored(2, sums[height_], STRIDE);
    if constexpr (N > 1 && W > 1) _tile_stored(3, sums[height_] + GROUP, STRIDE);
  }

 private:
  std::int64_t height_;
};
#endif

// Each block is a row, whose sums stay in registers.
struct ByRegisters {
  static constexpr std::int64_t BLOCK = 1, BLOCKS = ROWS;

  explicit ByRegisters(std::int64_t) {}

#if defined(HAS_VNNI)
  template <std::int64_t N, std::int64_t W>
  void multiply(Operands of, std::int32_t (&sums)[N][W * GROUP]) const {
    // Sums of few rows would wait for one another: they are several, of every second or fourth stretch of numbers.
    constexpr std::int64_t CHAINS = N * W > 4 ? 1 : N * W > 2 ? 2 : 4;
    __m512i all[N][W * CHAINS] = {};
    const auto add = [&](std::int64_t chain) {
      if (N > ROWS / 2) __builtin_prefetch(of.ahead, 0, 2);
      __m512i weights[W];
#pragma GCC unroll 3
      for (std::int64_t i = 0; i < W; ++i) weights[i] = _mm512_loadu_si512(of.right + 64 * i);
#pragma GCC unroll 12
      for (std::int64_t row = 0; row < N; ++row) {
        std::int32_t four;
        std::memcpy(&four, of.left + row * of.stride, sizeof(four));
        const __m512i numbers = _mm512_set1_epi32(four);
#pragma GCC unroll 3
        for (std::int64_t i = 0; i < W; ++i) {
          all[row][W * chain + i] = _mm512_dpbusd_epi32(all[row][W * chain + i], numbers, weights[i]);
        }
      }
      of.left += FOUR, of.right += FOUR * GROUP * W, of.ahead += of.pace;
    };
    std::int64_t k = 0;
    for (; k + FOUR * CHAINS <= of.depth; k += FOUR * CHAINS) {
#pragma GCC unroll 4
      for (std::int64_t chain = 0; chain < CHAINS; ++chain) add(chain);
    }
    for (; k < of.depth; k += FOUR) add(0);
#pragma GCC unroll 12
    for (std::int64_t row = 0; row < N; ++row) {
#pragma GCC unroll 12
      for (std::int64_t i = W; i < W * CHAINS; ++i) all[row][i % W] = _mm512_add_epi32(all[row][i % W], all[row][i]);
    }
#pragma GCC unroll 12
    for (std::int64_t row = 0; row < N; ++row) {  // no memcpy, for which the sums would have to be in memory all the time
#pragma GCC unroll 3
      for (std::int64_t i = 0; i < W; ++i) _mm512_storeu_si512(sums[row] + GROUP * i, all[row][i]);
    }
  }
#elif defined(HAS_AVX2)
  // A group at a time, so that the sums stay in registers. Sums of two products fit 16 bits (integers.py).
  template <std::int64_t N, std::int64_t W>
  void multiply(const Operands& of, std::int32_t (&sums)[N][W * GROUP]) const {
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::int64_t group = 0; group < W; ++group) {
      __m256i all[N][2];
      for (auto& row : all) row[0] = row[1] = _mm256_setzero_si256();
      const std::uint8_t* numbers = of.left;
      const auto* weights = reinterpret_cast<const __m256i*>(of.right) + 2 * group;
      for (std::int64_t k = 0; k < of.depth; k += FOUR, numbers += FOUR, weights += 2 * W) {
        const __m256i first = _mm256_loadu_si256(weights), second = _mm256_loadu_si256(weights + 1);
#pragma GCC unroll 12
        for (std::int64_t row = 0; row < N; ++row) {
          std::int32_t four;
          std::memcpy(&four, numbers + row * of.stride, sizeof(four));
          const __m256i left = _mm256_set1_epi32(four);
          const auto added = [&](__m256i right) { return _mm256_madd_epi16(_mm256_maddubs_epi16(left, right), ones); };
          all[row][0] = _mm256_add_epi32(all[row][0], added(first));
          all[row][1] = _mm256_add_epi32(all[row][1], added(second));
        }
      }
      for (std::int64_t row = 0; row < N; ++row) std::memcpy(sums[row] + group * GROUP, all[row], sizeof(all[row]));
    }
  }
#else
  template <std::int64_t N, std::int64_t W>
  void multiply(Operands of, std::int32_t (&sums)[N][W * GROUP]) const {
    std::memset(sums, 0, sizeof(sums));
    for (std::int64_t k = 0; k < of.depth; k += FOUR, of.left += FOUR, of.right += FOUR * GROUP * W) {
      for (std::int64_t row = 0; row < N; ++row) {
        for (std::int64_t column = 0; column < W * GROUP; ++column) {
          for (std::int64_t i = 0; i < FOUR; ++i) {
            sums[row][column] += of.left[row * of.stride + i] * of.right[column * FOUR + i];
          }
        }
      }
    }
  }
#endif
};

// The right factor (K, N), in panels of up to GROUPS groups of columns.
class RightBytes {
 public:
  RightBytes() = default;
  RightBytes(const Aligned<std::int8_t>& matrix, Aligned<float> scales, std::int64_t depth,
             std::int64_t columns)
      : depth_(rounded_up(depth, STRETCH)),
        columns_(columns),
        panels_(rounded_up(columns, GROUP) / GROUP, GROUPS),
        scales_(std::move(scales)) {
    data_.assign(static_cast<std::size_t>(depth_ * rounded_up(columns, GROUP)), 0);
    offsets_.assign(static_cast<std::size_t>(columns), 0);
    for (std::int64_t number = 0; number < panels_.count; ++number) {
      const std::int64_t first = panels_.first(number) * GROUP, width = panels_.size(number) * GROUP;
      for (std::int64_t k = 0; k < depth; ++k) {
        for (std::int64_t column = first; column < std::min(columns, first + width); ++column) {
          const std::int8_t value = matrix[static_cast<std::size_t>(k * columns + column)];
          const std::int64_t in_panel = k / FOUR * FOUR * width + (column - first) * FOUR + k % FOUR;
          data_[static_cast<std::size_t>(first * depth_ + in_panel)] = value;
          offsets_[static_cast<std::size_t>(column)] += ZERO_LEVEL * value;
        }
      }
    }
  }

  // As Right::product; `bias` (N).
  template <class Real>
  void product(const LeftBytes& left, Real* out, std::int64_t stride, const Real* bias = nullptr,
               bool add = false) const {
#if defined(HAS_AMX)
    if (left.rows() > FEW) return product_by<ByTiles>(left, out, stride, bias, add);
#endif
    product_by<ByRegisters>(left, out, stride, bias, add);
  }

 private:
  template <class Way, class Real>
  void product_by(const LeftBytes& left, Real* out, std::int64_t stride, const Real* bias, bool add) const {
    const std::int64_t blocks = (left.rows() + Way::BLOCK - 1) / Way::BLOCK;
    if (blocks == 0) return;
    const std::int64_t height = (left.rows() + blocks - 1) / blocks;  // of all blocks but the last
    const Even strips(blocks, Way::BLOCKS);
    const Way way(height);
    for (std::int64_t number = 0; number < panels_.count; ++number) {
      const std::int64_t first = panels_.first(number) * GROUP, groups = panels_.size(number);
      const std::int8_t* const panel = data_.data() + first * depth_;
      const std::int64_t pace = FOUR * GROUP * groups / strips.count;
      for (std::int64_t strip = 0; strip < strips.count; ++strip) {
        const std::int64_t row = strips.first(strip) * height;
        const std::int8_t* const ahead = panel + depth_ * groups * GROUP + strip * pace * (depth_ / FOUR);
        const Tile<Way, Real> tile{way, {left.row(row), left.stride(), panel, ahead, pace, depth_}, strips.size(strip),
                                   std::min(strips.size(strip) * height, left.rows() - row),
                                   std::min(groups * GROUP, columns_ - first), left.scales() + row,
                                   offsets_.data() + first, scales_.data() + first, bias ? bias + first : nullptr,
                                   out + row * stride + first, stride, add};
        if (groups == 1) tile.template of_width<1>();
        else if (groups == 2) tile.template of_width<2>();
        else tile.template of_width<GROUPS>();
      }
    }
  }

  // The product of a strip of rows with a panel of columns.
  template <class Way, class Real>
  struct Tile {
    const Way& way;
    Operands operands;
    std::int64_t blocks, rows, columns;
    const float* row_scales;
    const std::int32_t* offsets;
    const float* scales;
    const Real* bias;
    Real* out;
    std::int64_t stride;
    bool add;

    // Calls the code for this number of blocks, which the compiler has unrolled.
    template <std::int64_t W, std::int64_t N = Way::BLOCKS>
    void of_width() const {
      if constexpr (N > 1) {
        if (blocks < N) return of_width<W, N - 1>();
      }
      alignas(64) std::int32_t sums[N * Way::BLOCK][W * GROUP];
      way.template multiply<N, W>(operands, sums);
      for (std::int64_t row = 0; row < (Way::BLOCK == 1 ? N : rows); ++row) {
        if constexpr (std::is_same_v<Real, float>) {
          if (columns == W * GROUP && !bias && !add) {
            write<W>(sums[row], row);
            continue;
          }
        }
        finish(sums[row], row);
      }
    }

    // The usual case of `finish`: whole groups of columns, and nothing to add.
    template <std::int64_t W>
    void write(const std::int32_t* sums, std::int64_t row) const {
      typedef std::int32_t Integers __attribute__((vector_size(4 * GROUP), aligned(4), may_alias));
      typedef float Numbers __attribute__((vector_size(4 * GROUP), aligned(4), may_alias));
      const auto group = [](auto* array, std::int64_t number) { return array + number * GROUP; };
#pragma GCC unroll 3
      for (std::int64_t k = 0; k < W; ++k) {
        const auto exact = *reinterpret_cast<const Integers*>(group(sums, k)) -
                           *reinterpret_cast<const Integers*>(group(offsets, k));
        *reinterpret_cast<Numbers*>(group(out + row * stride, k)) =
            __builtin_convertvector(exact, Numbers) * *reinterpret_cast<const Numbers*>(group(scales, k)) * row_scales[row];
      }
    }

    // Writes the numbers of some sums to a row.
    void finish(const std::int32_t* sums, std::int64_t row) const {
      Real* const to = out + row * stride;
#pragma GCC ivdep
      for (std::int64_t column = 0; column < columns; ++column) {
        const float number = static_cast<float>(sums[column] - offsets[column]) * scales[column] * row_scales[row];
        const Real before = (add ? to[column] : Real{0}) + (bias ? bias[column] : Real{0});
        to[column] = before + static_cast<Real>(number);
      }
    }
  };

  std::int64_t depth_ = 0, columns_ = 0;
  Even panels_{0, GROUPS};
  Aligned<std::int8_t> data_;
  Aligned<std::int32_t> offsets_;      // (N) what the zero level adds to a sum
  Aligned<float> scales_;              // (N)
};

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
