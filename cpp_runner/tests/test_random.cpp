#include <doctest/doctest.h>

#include "random.h"

using namespace compgen;

TEST_CASE("Philox 4x32-10 gives the published vectors") {
  // Random123's known answers: counter, key, result.
  using Four = std::array<std::uint32_t, 4>;
  CHECK(philox(0, Four{0, 0, 0, 0}) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(~0ULL, Four{~0U, ~0U, ~0U, ~0U}) == Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, Four{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniforms are those of compgen/data/random.py, the same in both precisions") {
  const double first[] = {7080717, 10669636, 15703304, 8031002}, last[] = {295017, 6811489, 10015585, 9567584};
  for (const bool begins : {true, false}) {
    const std::int64_t block = begins ? 0 : 16'383;
    const auto floats = uniforms<float>(5, 1'000'000'000'007, block);
    const auto doubles = uniforms<double>(5, 1'000'000'000'007, block);
    for (std::size_t k = 0; k < 4; ++k) {
      CHECK(static_cast<double>(floats[k]) == doubles[k]);
      CHECK(doubles[k] == (begins ? first : last)[k] * 0x1p-24);
    }
  }
}

TEST_CASE("ranks cover what they may be, and no more") {
  std::array<int, 3> seen{};
  for (std::int64_t sample = 0; sample < 300; ++sample) {
    const auto rank = rank_of(1, sample, 3);
    REQUIRE((rank >= 0 && rank < 3));
    ++seen[static_cast<std::size_t>(rank)];
  }
  for (const int count : seen) CHECK(count > 60);
}

TEST_CASE("latent vectors are those of compgen/data/random.py") {
  std::array<double, 5> found{};
  latents(3, 123, 5, 10.0, found.data());
  const std::array<double, 5> expected{-1.7949857966076868, 0.1384879707581578, 3.54487325972202, 1.1097868644410507, -0.9829046491008206};
  for (std::size_t k = 0; k < 5; ++k) CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-12));
}
