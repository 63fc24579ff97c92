// Sums over the rows of a matrix that is used once: of products with a vector, and weighted ones. To each row another
// one is added as it is read, as attention adds the vector of a relative position to a key or value.
#pragma once

#include <cstdint>
#include <type_traits>

#include "product.h"

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {

// The product of `a` with the sum of `b` and `more`.
template <class Real>
Real dot(const Real* a, const Real* b, const Real* more, std::int64_t size) {
  Real sum = 0;
  for (std::int64_t k = 0; k < size; ++k) sum += a[k] * (b[k] + more[k]);
  return sum;
}

// Calls `work` with the number of registers of a row as a constant, so that the compiler unrolls its loops; with 0 for
// a width other than the two that networks usually have.
template <class Real, class Work>
void for_width(std::int64_t width, const Work& work) {
  if (width == 8 * LANES<Real>) work(std::integral_constant<std::int64_t, 8>());
  else if (width == 4 * LANES<Real>) work(std::integral_constant<std::int64_t, 4>());
  else work(std::integral_constant<std::int64_t, 0>());
}

// Replaces each number x by function(x). It computes whole registers: the array must have room to the end of the last
// one, which is overwritten.
template <class Real, class Function>
void apply(Real* numbers, std::int64_t count, const Function& function) {
  const std::int64_t whole = rounded_up(count, LANES<Real>);
  for (std::int64_t k = count; k < whole; ++k) numbers[k] = 1;
#pragma GCC ivdep
  for (std::int64_t k = 0; k < whole; ++k) numbers[k] = function(numbers[k]);
}

// Prefetches an array that is read soon.
template <class Real>
void ask_for(const Real* numbers, std::int64_t size) {
  constexpr std::int64_t LINE = 64 / static_cast<std::int64_t>(sizeof(Real));
  for (std::int64_t k = 0; k < size; k += LINE) __builtin_prefetch(numbers + k);
}

// N registers of the weighted sum, from column `first` on. N is a constant so that the sums stay in registers.
template <std::int64_t N, class Real, class More>
void add_up(const Real* weights, const Real* rows, const More& more, std::int64_t count, std::int64_t width,
            std::int64_t first, Real* sum) {
  using Vector = typename Register<Real>::Vector;
  Vector sums[N] = {};
  for (std::int64_t row = 0; row < count; ++row) {
    const auto* const numbers = reinterpret_cast<const Vector*>(rows + row * width + first);
    const auto* const others = reinterpret_cast<const Vector*>(more(row) + first);
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < N; ++k) sums[k] += weights[row] * (numbers[k] + others[k]);
  }
#pragma GCC unroll 8
  for (std::int64_t k = 0; k < N; ++k) *(reinterpret_cast<Vector*>(sum + first) + k) = sums[k];
}

// The sum (width) over `count` rows of weights[row] * (rows[row] + more(row)), with `rows` (count, width), and `more` a
// function that returns a row (width).
template <class Real, class More>
void weighted_sum(const Real* weights, const Real* rows, const More& more, std::int64_t count, std::int64_t width,
                  Real* sum) {
  std::int64_t first = 0;
  const auto stretch = [&](auto size) {
    constexpr std::int64_t N = decltype(size)::value;
    for (; first + N * LANES<Real> <= width; first += N * LANES<Real>) {
      add_up<N>(weights, rows, more, count, width, first, sum);
    }
  };
  stretch(std::integral_constant<std::int64_t, 8>());
  stretch(std::integral_constant<std::int64_t, 4>());
  stretch(std::integral_constant<std::int64_t, 1>());
  for (; first < width; ++first) {
    sum[first] = 0;
    for (std::int64_t row = 0; row < count; ++row) {
      sum[first] += weights[row] * (rows[row * width + first] + more(row)[first]);
    }
  }
}

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
