#include <doctest/doctest.h>

#include <cstdint>

#include "aligned.h"

using namespace compgen;

TEST_CASE("arrays begin where cache lines do, however they grow") {
  Aligned<float> array;
  for (int k = 0; k < 100; ++k) {
    array.push_back(0.0F);
    const Aligned<float> copy = array;
    CHECK(reinterpret_cast<std::uintptr_t>(array.data()) % 64 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(copy.data()) % 64 == 0);
  }
}
