// Functions of single numbers, in code that the compiler turns into vector instructions on any processor.
#pragma once

#include <algorithm>
#include <cmath>

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {

// A quotient that is not divided yet: divisions take longest, and several quotients can share one.
template <class Real>
struct Quotient {
  Real above, below;
};

// tanh(x); HALVED, tanh(x / 2).
template <bool HALVED = false, class Real>
Quotient<Real> tangent_quotient(Real x) {
  return {std::tanh(HALVED ? x / 2 : x), Real{1}};
}

// The coefficient of x^power; HALVED, that of (x / 2)^power, which is exact and spares the halving.
template <bool HALVED>
constexpr float of_power(int power, float coefficient) {
  for (; HALVED && power > 0; --power) coefficient /= 2;
  return coefficient;
}

// In float, within 4.2 units in the last place (2.5e-7): x P(x^2) / Q(x^2), fitted in relative error up to 9.02, from where
// on tanh is 1 in float. No intermediate result is infinite; Q is between 0.89 and 378.
template <bool HALVED = false>
Quotient<float> tangent_quotient(float x) {
  constexpr float END = HALVED ? 18.04F : 9.02F;
  constexpr float P1 = of_power<HALVED>(1, 0.8958334922790527F), P3 = of_power<HALVED>(3, 0.1198599711060524F),
                  P5 = of_power<HALVED>(5, 3.1300722621381283e-03F), P7 = of_power<HALVED>(7, 1.843936297518667e-05F),
                  P9 = of_power<HALVED>(9, 1.193167520341376e-08F), Q0 = 0.8958335518836975F,
                  Q2 = of_power<HALVED>(2, 0.41847091913223267F), Q4 = of_power<HALVED>(4, 2.3176170885562897e-02F),
                  Q6 = of_power<HALVED>(6, 2.9411030118353665e-04F), Q8 = of_power<HALVED>(8, 6.953474667170667e-07F);
  if constexpr (HALVED) {
    x = x > END ? END : x;  // an instruction each
    x = x < -END ? -END : x;
  } else {  // two each, but training's saturated sigmoids, 3e-8 apart otherwise, keep their digits, and its figures hold
    x = std::min(std::max(x, -END), END);
  }
  const float t = x * x;
  const float p = (((P9 * t + P7) * t + P5) * t + P3) * t + P1, q = (((Q8 * t + Q6) * t + Q4) * t + Q2) * t + Q0;
  return {x * p, q};
}

// The sigmoid by tanh, (1 + tanh(x / 2)) / 2. The usual form has exp(-x), which may be infinite, and the compiler may
// assume that no number is (-ffast-math).
template <class Real>
Quotient<Real> sigmoid_quotient(Real x) {
  const auto [above, below] = tangent_quotient<true>(x);
  return {above + below, 2 * below};
}

template <class Real>
Real tangent(Real x) {
  const auto [above, below] = tangent_quotient(x);
  return above / below;
}

template <class Real>
Real sigmoid(Real x) {
  return Real{0.5} * tangent(Real{0.5} * x) + Real{0.5};
}

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
