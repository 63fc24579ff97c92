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

// tanh.
template <class Real>
Quotient<Real> tangent_quotient(Real x) {
  return {std::tanh(x), Real{1}};
}

// tanh in float, within 4.2 units in the last place (2.5e-7): x P(x^2) / Q(x^2), fitted in relative error up to 9.02,
// from where on tanh is 1 in float. No intermediate result is infinite; Q is between 0.89 and 378.
template <>
inline Quotient<float> tangent_quotient(float x) {
  constexpr float END = 9.02F;
  x = std::min(std::max(x, -END), END);
  const float t = x * x;
  const float p = (((1.193167520341376e-08F * t + 1.843936297518667e-05F) * t + 3.1300722621381283e-03F) * t +
                   0.1198599711060524F) * t + 0.8958334922790527F;
  const float q = (((6.953474667170667e-07F * t + 2.9411030118353665e-04F) * t + 2.3176170885562897e-02F) * t +
                   0.41847091913223267F) * t + 0.8958335518836975F;
  return {x * p, q};
}

// The sigmoid by tanh, (1 + tanh(x / 2)) / 2. The usual form has exp(-x), which may be infinite, and the compiler may
// assume that no number is (-ffast-math).
template <class Real>
Quotient<Real> sigmoid_quotient(Real x) {
  const auto [above, below] = tangent_quotient(Real{0.5} * x);
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
