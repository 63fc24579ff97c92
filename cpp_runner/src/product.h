// Matrix products of a batch with weights that stay the same: weights are copied once and for all into the order in
// which the innermost loop reads them, rows of the batch are read where they lie.
//
// The loop holds a tile of sums in the processor's registers, up to ROWS rows of up to VECTORS registers each, and adds to
// it a column of the left factor times a row of the right one.
// The inner dimension is split into stretches of DEPTH, so that a stretch of the whole batch stays in the second-level
// cache. While a panel of weights is multiplied, the next one is prefetched, piece by piece: all weights together are
// more than that cache holds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "aligned.h"

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {

constexpr std::int64_t REGISTER = VECTOR_BYTES;
// A tile of ROWS x VECTORS registers takes ROWS + VECTORS reads for each column of the left factor. With 64-byte
// registers reads are the bottleneck: 9 x 3, with 12 reads for 27 products, is a sixth faster than 12 x 2, with 14 for
// 24.
#if VECTOR_BYTES == 64
constexpr std::int64_t ROWS = 9, VECTORS = 3;  // 27 of 32 registers are sums
#elif defined(__aarch64__)
constexpr std::int64_t ROWS = 12, VECTORS = 2;  // 24 of 32
#elif VECTOR_BYTES == 32
constexpr std::int64_t ROWS = 6, VECTORS = 2;  // 12 of 16
#else
constexpr std::int64_t ROWS = 4, VECTORS = 2;  // 8 of 16
#endif
constexpr std::int64_t DEPTH = 512;

template <class Real>
constexpr std::int64_t LANES = REGISTER / static_cast<std::int64_t>(sizeof(Real));

constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

// `total` things in as few parts of up to `most` as can be, whose sizes differ by one at most; the larger come first.
struct Even {
  std::int64_t count, least, larger;

  Even(std::int64_t total, std::int64_t most)
      : count((total + most - 1) / most), least(count > 0 ? total / count : 0), larger(total - count * least) {}

  std::int64_t first(std::int64_t part) const { return part * least + std::min(part, larger); }
  std::int64_t size(std::int64_t part) const { return least + (part < larger); }
};

// A vector register; aligned like the number, so that it may be read from anywhere.
template <class Real>
struct Register {
  typedef Real Vector __attribute__((vector_size(REGISTER), aligned(alignof(Real)), may_alias));
};

// Memory for at least `size` numbers, which an array keeps from one use to the next; what it holds is not defined.
template <class T>
T* room(Aligned<T>& array, std::int64_t size) {
  if (static_cast<std::int64_t>(array.size()) < size) array.resize(static_cast<std::size_t>(size));
  return array.data();
}

// The left factor (M, K): the columns of one matrix, or of two side by side. They are not copied: the product reads
// them, and they must stay until then.
template <class Real>
class Left {
 public:
  // Some columns of all rows, which are `stride` apart.
  struct Part {
    const Real* numbers;
    std::int64_t width, stride;
  };

  void shape(std::int64_t rows, std::int64_t depth) { rows_ = rows, depth_ = depth, parts_ = {}; }

  // Sets columns first .. first + width - 1. One call sets all K; or one sets those from 0 on, and another the rest.
  void put(std::int64_t first, const Real* from, std::int64_t width, std::int64_t stride) {
    parts_[first > 0] = {from, width, stride};
  }

  std::int64_t rows() const { return rows_; }

  // The columns begin .. end - 1; a part that has none of them is empty.
  std::array<Part, 2> between(std::int64_t begin, std::int64_t end) const {
    const auto cut = [&](const Part& part, std::int64_t start) -> Part {
      const auto within = [&](std::int64_t column) { return std::clamp<std::int64_t>(column - start, 0, part.width); };
      return {part.numbers + within(begin), within(end) - within(begin), part.stride};
    };
    return {cut(parts_[0], 0), cut(parts_[1], depth_ - parts_[1].width)};
  }

 private:
  std::int64_t rows_ = 0, depth_ = 0;
  std::array<Part, 2> parts_{};
};

// The right factor (K, N), in panels of up to VECTORS registers, as even as they can be: a panel of a single register
// would have too few sums for a processor to work on at a time.
template <class Real>
class Right {
 public:
  Right() = default;
  Right(const Real* matrix, std::int64_t depth, std::int64_t columns) : Right(depth, columns) {
    for (std::int64_t panel = 0; panel < panels(); ++panel) put(panel, matrix);
  }

  // Room for a factor whose panels are put afterwards, with `put` or `put_transposed`.
  Right(std::int64_t depth, std::int64_t columns)
      : depth_(depth), columns_(columns), data_(static_cast<std::size_t>(depth * rounded_up(columns, LANES<Real>))) {}

  std::int64_t panels() const { return (registers() + VECTORS - 1) / VECTORS; }

  // Copies a panel of a matrix (K, N).
  void put(std::int64_t panel, const Real* matrix) {
    const Panel to = at(panel);
    for (std::int64_t k = 0; k < depth_; ++k) {
      std::copy_n(matrix + k * columns_ + to.first, to.used, data_.data() + place(to, k));
    }
  }

  // The same of its transpose (N, K), a cache line of each row at a time.
  void put_transposed(std::int64_t panel, const Real* matrix) {
    const Panel in = at(panel);
    constexpr std::int64_t LINE = 64 / sizeof(Real);
    for (std::int64_t begin = 0, end = 0; begin < depth_; begin = end) {
      end = std::min(depth_, begin + LINE - begin % LINE);  // DEPTH is so many lines
      Real* const to = data_.data() + place(in, begin);
      for (std::int64_t column = 0; column < in.used; ++column) {
        const Real* const from = matrix + (in.first + column) * depth_;
        for (std::int64_t k = begin; k < end; ++k) to[(k - begin) * in.width + column] = from[k];
      }
    }
  }

  // Writes the product (M, N) to a matrix whose rows are `stride` apart, or adds it. That must not overlap what the
  // left factor is read from. `bias` (N), if there is one, is added to each row; its last register is read as a whole.
  void product(const Left<Real>& left, Real* out, std::int64_t stride, const Real* bias = nullptr,
               bool add = false) const {
    const Even strips(left.rows(), ROWS);
    for (std::int64_t k = 0; k == 0 || k < depth_; k += DEPTH) {  // a product of depth 0 is written, too
      const std::int64_t depth = std::min(DEPTH, depth_ - k);
      const auto parts = left.between(k, k + depth);
      for (std::int64_t number = 0; number < panels(); ++number) {
        const Panel panel = at(number);
        const Real* const weights = data_.data() + place(panel, k);
        const std::int64_t pace = (panel.width + strips.count - 1) / std::max<std::int64_t>(1, strips.count);
        for (std::int64_t strip = 0; strip < strips.count; ++strip) {
          const std::int64_t row = strips.first(strip);
          const Real* const ahead = weights + depth * (panel.width + strip * pace);
          const Tile tile{parts, row, strips.size(strip), weights, panel.used, ahead, pace,
                          bias && k == 0 ? bias + panel.first : nullptr, out + row * stride + panel.first, stride,
                          add || k > 0};
          if (panel.width == LANES<Real>) tile.template of_width<1>();
          else if (panel.width == 2 * LANES<Real>) tile.template of_width<2>();
          else tile.template of_width<VECTORS>();
        }
      }
    }
  }

 private:
  using Vector = typename Register<Real>::Vector;

  // The columns first .. first + used - 1, in registers of `width` numbers together.
  struct Panel {
    std::int64_t first, used, width;
  };

  std::int64_t registers() const { return rounded_up(columns_, LANES<Real>) / LANES<Real>; }

  Panel at(std::int64_t panel) const {
    const Even all(registers(), VECTORS);
    const std::int64_t first = all.first(panel) * LANES<Real>, width = all.size(panel) * LANES<Real>;
    return {first, std::min(width, columns_ - first), width};
  }

  std::int64_t place(const Panel& panel, std::int64_t k) const {
    const std::int64_t stretch = k / DEPTH * DEPTH, depth = std::min(DEPTH, depth_ - stretch);
    return stretch * rounded_up(columns_, LANES<Real>) + panel.first * depth + (k - stretch) * panel.width;
  }

  // The product of a strip, rows first .. first + rows - 1, with a panel. Meanwhile `ahead` is prefetched, `pace`
  // numbers for each column of the left factor; prefetching beyond the end of an array is harmless.
  struct Tile {
    const std::array<typename Left<Real>::Part, 2>& parts;
    std::int64_t first, rows;
    const Real* weights;
    std::int64_t columns;
    const Real* ahead;
    std::int64_t pace;
    const Real* bias;
    Real* out;
    std::int64_t stride;
    bool add;

    // Calls the code for this number of rows, which the compiler has unrolled.
    template <std::int64_t W, std::int64_t N = ROWS>
    void of_width() const {
      if constexpr (N > 1) {
        if (rows < N) return of_width<W, N - 1>();
      }
      multiply<N, W>();
    }

    static const Vector& in(const Real* numbers, std::int64_t k) {
      return *reinterpret_cast<const Vector*>(numbers + k * LANES<Real>);
    }

    // N rows of W registers. Each row's sums are the same whatever N and W are.
    template <std::int64_t N, std::int64_t W>
    void multiply() const {
      Vector sums[N][W] = {};
      if (bias) {
#pragma GCC unroll 12
        for (std::int64_t row = 0; row < N; ++row) {
#pragma GCC unroll 3
          for (std::int64_t k = 0; k < W; ++k) sums[row][k] = in(bias, k);
        }
      }
      const Real *right = weights, *next = ahead;
      for (const auto& part : parts) {
        const Real* left = part.numbers + first * part.stride;
        for (std::int64_t step = 0; step < part.width; ++step, ++left, right += W * LANES<Real>, next += pace) {
          if (N > ROWS / 2) __builtin_prefetch(next, 0, 2);  // into the second-level cache
          Vector row_of_right[W];
#pragma GCC unroll 3
          for (std::int64_t k = 0; k < W; ++k) row_of_right[k] = in(right, k);
#pragma GCC unroll 12
          for (std::int64_t row = 0; row < N; ++row) {
#pragma GCC unroll 3
            for (std::int64_t k = 0; k < W; ++k) sums[row][k] += left[row * part.stride] * row_of_right[k];
          }
        }
      }
      if (columns == W * LANES<Real>) {
#pragma GCC unroll 12
        for (std::int64_t row = 0; row < N; ++row) {
#pragma GCC unroll 3
          for (std::int64_t k = 0; k < W; ++k) {
            auto& to = const_cast<Vector&>(in(out + row * stride, k));
            to = add ? to + sums[row][k] : sums[row][k];
          }
        }
        return;
      }
      Real edge[N][W * LANES<Real>];
      std::memcpy(edge, sums, sizeof(edge));
      for (std::int64_t row = 0; row < N; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          Real& to = out[row * stride + column];
          to = add ? to + edge[row][column] : edge[row][column];
        }
      }
    }
  };

  std::int64_t depth_ = 0, columns_ = 0;
  Aligned<Real> data_;
};

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
