// Matrix products of a batch with weights that stay the same: both factors are copied into the order in which the
// innermost loop reads them, weights once and for all.
//
// The loop holds a tile of ROWS x COLUMNS sums in the processor's registers, and adds to it a column of the left factor
// times a row of the right one. COLUMNS is two vector registers; ROWS is what the rest of the registers allow. The
// inner dimension goes in stretches of DEPTH, so that a stretch of the whole batch stays in the second-level cache. While
// a panel of weights is multiplied, the next one is asked for, piece by piece: all weights are more than that cache holds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "aligned.h"

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {

constexpr std::int64_t REGISTER = VECTOR_BYTES;
#if VECTOR_BYTES == 64 || defined(__aarch64__)
constexpr std::int64_t ROWS = 12;  // 24 of 32 registers are sums
#elif VECTOR_BYTES == 32
constexpr std::int64_t ROWS = 6;  // 12 of 16 registers are sums
#else
constexpr std::int64_t ROWS = 4;
#endif
constexpr std::int64_t DEPTH = 512;

template <class Real>
constexpr std::int64_t LANES = REGISTER / static_cast<std::int64_t>(sizeof(Real));
template <class Real>
constexpr std::int64_t COLUMNS = 2 * LANES<Real>;

constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

// A vector register; aligned like the number, so that it may be read from anywhere.
template <class Real>
struct Register {
  typedef Real Vector __attribute__((vector_size(REGISTER), aligned(alignof(Real)), may_alias));
};

// Numbers of two vectors of four: 0 to 3 are those of the first, 4 to 7 of the second.
#if defined(__clang__)
#define SHUFFLED(first, second, ...) __builtin_shufflevector(first, second, __VA_ARGS__)
#else
#define SHUFFLED(first, second, ...) \
  __builtin_shuffle(first, second, std::conditional_t<sizeof(Real) == 4, Int4, Long4>{__VA_ARGS__})
#endif
typedef std::int32_t Int4 __attribute__((vector_size(16)));
typedef std::int64_t Long4 __attribute__((vector_size(32)));

// At least so many numbers, kept from one use to the next.
template <class T>
T* room(Aligned<T>& array, std::int64_t size) {
  if (static_cast<std::int64_t>(array.size()) < size) array.resize(static_cast<std::size_t>(size));
  return array.data();
}

// The left factor (M, K), in strips of ROWS rows.
template <class Real>
class Left {
 public:
  // Makes room for `rows` x `depth`. What is in it stays only as long as both stay the same.
  void shape(std::int64_t rows, std::int64_t depth) {
    rows_ = rows, depth_ = depth;
    data_.resize(static_cast<std::size_t>(rounded_up(rows, ROWS) * depth));
  }

  // Sets columns first .. first + width - 1 from a matrix of `width` columns, whose rows are `stride` apart.
  void put(std::int64_t first, const Real* from, std::int64_t width, std::int64_t stride) {
    for (std::int64_t begin = 0, end = 0; begin < width; begin = end) {  // what lies in one stretch
      end = std::min(width, begin + DEPTH - (first + begin) % DEPTH);
      for (std::int64_t strip = 0; strip < rows_; strip += ROWS) {
        put(from + strip * stride + begin, end - begin, stride, place(strip, first + begin), std::min(ROWS, rows_ - strip));
      }
    }
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t depth() const { return depth_; }
  const Real* at(std::int64_t strip, std::int64_t k) const { return const_cast<Left*>(this)->place(strip, k); }

 private:
  // Sets some columns of a strip, of a whole one four at a time.
  static void put(const Real* from, std::int64_t width, std::int64_t stride, Real* to, std::int64_t rows) {
    std::int64_t k = 0;
    if (rows == ROWS) {
      for (; k + 4 <= width; k += 4) put_four(from + k, stride, to + k * ROWS);
    }
    for (; k < width; ++k) {
      for (std::int64_t row = 0; row < rows; ++row) to[k * ROWS + row] = from[row * stride + k];
    }
  }

  // Four rows become four columns within registers, so that there is a store for four numbers and not for each; two rows
  // that may be left, the same.
  static void put_four(const Real* from, std::int64_t stride, Real* to) {
#pragma GCC unroll 3
    for (std::int64_t row = 0; row + 4 <= ROWS; row += 4) {
      const Real* const rows = from + row * stride;
      const Four a = four(rows), b = four(rows + stride), c = four(rows + 2 * stride), d = four(rows + 3 * stride);
      const Four ab = SHUFFLED(a, b, 0, 4, 1, 5), cd = SHUFFLED(c, d, 0, 4, 1, 5);
      four(to + row) = SHUFFLED(ab, cd, 0, 1, 4, 5);
      four(to + ROWS + row) = SHUFFLED(ab, cd, 2, 3, 6, 7);
      const Four ba = SHUFFLED(a, b, 2, 6, 3, 7), dc = SHUFFLED(c, d, 2, 6, 3, 7);
      four(to + 2 * ROWS + row) = SHUFFLED(ba, dc, 0, 1, 4, 5);
      four(to + 3 * ROWS + row) = SHUFFLED(ba, dc, 2, 3, 6, 7);
    }
    if (ROWS % 4 == 0) return;
    const Four a = four(from + (ROWS - 2) * stride), b = four(from + (ROWS - 1) * stride);
    const Four ab = SHUFFLED(a, b, 0, 4, 1, 5), ba = SHUFFLED(a, b, 2, 6, 3, 7);
    const Real pairs[4][2] = {{ab[0], ab[1]}, {ab[2], ab[3]}, {ba[0], ba[1]}, {ba[2], ba[3]}};
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) std::memcpy(to + k * ROWS + ROWS - 2, pairs[k], sizeof(pairs[k]));
  }

  // Four numbers, aligned like one.
  typedef Real Four __attribute__((vector_size(4 * sizeof(Real)), aligned(alignof(Real)), may_alias));
  static const Four& four(const Real* numbers) { return *reinterpret_cast<const Four*>(numbers); }
  static Four& four(Real* numbers) { return *reinterpret_cast<Four*>(numbers); }

  // Stretches of DEPTH columns lie one after another, each with all strips.
  Real* place(std::int64_t strip, std::int64_t k) {
    const std::int64_t stretch = k / DEPTH * DEPTH, width = std::min(DEPTH, depth_ - stretch);
    return data_.data() + stretch * rounded_up(rows_, ROWS) + strip * width + (k - stretch) * ROWS;
  }

  std::int64_t rows_ = 0, depth_ = 0;
  std::vector<Real> data_;
};

// The right factor (K, N), in panels of COLUMNS columns.
template <class Real>
class Right {
 public:
  Right() = default;
  Right(const Real* matrix, std::int64_t depth, std::int64_t columns) : Right(depth, columns) {
    for (std::int64_t panel = 0; panel < panels(); ++panel) put(panel, matrix);
  }

  // Room for a factor whose panels are put afterwards, with `put` or `put_transposed`.
  Right(std::int64_t depth, std::int64_t columns) : depth_(depth), columns_(columns) {
    data_.assign(static_cast<std::size_t>(panels() * depth * COLUMNS<Real>), Real{0});
  }

  std::int64_t panels() const { return (columns_ + COLUMNS<Real> - 1) / COLUMNS<Real>; }

  // Copies a panel of a matrix (K, N).
  void put(std::int64_t panel, const Real* matrix) {
    const std::int64_t first = panel * COLUMNS<Real>, width = std::min(COLUMNS<Real>, columns_ - first);
    for (std::int64_t k = 0; k < depth_; ++k) {
      std::copy_n(matrix + k * columns_ + first, width, data_.data() + place(first, k));
    }
  }

  // The same of its transpose (N, K), a cache line of each row at a time.
  void put_transposed(std::int64_t panel, const Real* matrix) {
    const std::int64_t first = panel * COLUMNS<Real>, width = std::min(COLUMNS<Real>, columns_ - first);
    constexpr std::int64_t LINE = 64 / sizeof(Real);
    for (std::int64_t begin = 0, end = 0; begin < depth_; begin = end) {
      end = std::min(depth_, begin + LINE - begin % LINE);  // DEPTH is so many lines
      Real* const to = data_.data() + place(first, begin);
      for (std::int64_t column = 0; column < width; ++column) {
        const Real* const from = matrix + (first + column) * depth_;
        for (std::int64_t k = begin; k < end; ++k) to[(k - begin) * COLUMNS<Real> + column] = from[k];
      }
    }
  }

  // Writes the product to a matrix whose rows are `stride` apart, or adds it. Each row begins with `bias`, if there is one:
  // numbers of whole panels.
  void product(const Left<Real>& left, Real* out, std::int64_t stride, const Real* bias = nullptr,
               bool add = false) const {
    for (std::int64_t k = 0; k < depth_; k += DEPTH) {
      const std::int64_t depth = std::min(DEPTH, depth_ - k);
      const std::int64_t strips = (left.rows() + ROWS - 1) / ROWS, pace = (COLUMNS<Real> + strips - 1) / strips;
      for (std::int64_t panel = 0; panel < columns_; panel += COLUMNS<Real>) {
        const std::int64_t columns = std::min(COLUMNS<Real>, columns_ - panel);
        for (std::int64_t strip = 0; strip < left.rows(); strip += ROWS) {
          const std::int64_t rows = std::min(ROWS, left.rows() - strip);
          Real* const to = out + strip * stride + panel;
          const Real* const first = bias && k == 0 ? bias + panel : nullptr;
          const Real* const weights = data_.data() + place(panel, k);
          const Ahead ahead{weights + depth * (COLUMNS<Real> + strip / ROWS * pace), pace};
          any(depth, left.at(strip, k), weights, ahead, to, stride, rows, columns, first, add || k > 0);
        }
      }
    }
  }

 private:
  using Vector = typename Register<Real>::Vector;

  // What is asked for meanwhile: so many numbers for each column of the left factor. Asking behind the end does no harm.
  struct Ahead {
    const Real* from;
    std::int64_t pace;
  };

  // A tile with no more rows than are needed: few rows wait for weights, not for sums.
  static void any(std::int64_t depth, const Real* a, const Real* b, Ahead ahead, Real* out, std::int64_t stride,
                  std::int64_t rows, std::int64_t columns, const Real* bias, bool add) {
    if (rows == 1) return tile<1>(depth, a, b, ahead, out, stride, rows, columns, bias, add);
    if (rows == 2) return tile<2>(depth, a, b, ahead, out, stride, rows, columns, bias, add);
    if (rows <= 4) return tile<4>(depth, a, b, ahead, out, stride, rows, columns, bias, add);
    if (rows <= 8 && ROWS > 8) return tile<8>(depth, a, b, ahead, out, stride, rows, columns, bias, add);
    tile<ROWS>(depth, a, b, ahead, out, stride, rows, columns, bias, add);
  }

  // Each row's sums are the same whatever N is.
  template <std::int64_t N>
  static void tile(std::int64_t depth, const Real* a, const Real* b, Ahead ahead, Real* out, std::int64_t stride,
                   std::int64_t rows, std::int64_t columns, const Real* bias, bool add) {
    Vector sums[N][2] = {};
    if (bias) {
#pragma GCC unroll 12
      for (std::int64_t row = 0; row < N; ++row) {
        sums[row][0] = *reinterpret_cast<const Vector*>(bias);
        sums[row][1] = *reinterpret_cast<const Vector*>(bias + LANES<Real>);
      }
    }
    for (std::int64_t k = 0; k < depth; ++k, a += ROWS, b += COLUMNS<Real>, ahead.from += ahead.pace) {
      if (N == ROWS) __builtin_prefetch(ahead.from, 0, 2);  // into the second-level cache
      const Vector first = *reinterpret_cast<const Vector*>(b);
      const Vector second = *reinterpret_cast<const Vector*>(b + LANES<Real>);
#pragma GCC unroll 12
      for (std::int64_t row = 0; row < N; ++row) {
        sums[row][0] += a[row] * first;
        sums[row][1] += a[row] * second;
      }
    }
    if (rows == N && columns == COLUMNS<Real>) {
#pragma GCC unroll 12
      for (std::int64_t row = 0; row < N; ++row) {
        auto* const to = reinterpret_cast<Vector*>(out + row * stride);
        auto* const next = reinterpret_cast<Vector*>(out + row * stride + LANES<Real>);
        *to = add ? *to + sums[row][0] : sums[row][0];
        *next = add ? *next + sums[row][1] : sums[row][1];
      }
      return;
    }
    Real edge[N][COLUMNS<Real>];
    std::memcpy(edge, sums, sizeof(edge));
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        Real& to = out[row * stride + column];
        to = add ? to + edge[row][column] : edge[row][column];
      }
    }
  }

  std::int64_t place(std::int64_t panel, std::int64_t k) const {
    const std::int64_t stretch = k / DEPTH * DEPTH, width = std::min(DEPTH, depth_ - stretch);
    return stretch * rounded_up(columns_, COLUMNS<Real>) + panel * width + (k - stretch) * COLUMNS<Real>;
  }

  std::int64_t depth_ = 0, columns_ = 0;
  Aligned<Real> data_;
};

#undef SHUFFLED

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
