// Addressed random numbers: Philox 4x32-10 (Salmon et al. 2011), as compgen/data/random.py has them.
//
// Key = the seed's low and high 32 bits. Counter = (sample low, sample high, step / 4, purpose); the word is step % 4.
// Of a derivation's nodes the third number is the node's place, counted level by level.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace compgen {

enum class Purpose : std::uint32_t { tokens = 0, prototypes = 1, latents = 2, nodes = 3 };

inline std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::array<std::uint32_t, 4> c) {
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0], p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// Attempts at a sample are told apart beside the purpose.
inline std::array<std::uint32_t, 4> words(std::uint64_t seed, std::int64_t sample, Purpose purpose,
                                          std::uint32_t block, std::uint32_t attempt = 0) {
  const auto address = static_cast<std::uint64_t>(sample);
  return philox(seed, {static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(address >> 32), block,
                       static_cast<std::uint32_t>(purpose) + 256 * attempt});
}

// Two numbers in [0, 1) for a node of a derivation, 32 bits each, so exact when a whole number below 2^20 is added.
inline std::array<double, 2> node_uniforms(std::uint64_t seed, std::int64_t sample, std::uint32_t place,
                                           std::uint32_t attempt) {
  const auto two = words(seed, sample, Purpose::nodes, place, attempt);
  return {static_cast<double>(two[0]) * 0x1p-32, static_cast<double>(two[1]) * 0x1p-32};
}

// Numbers in [0, 1) that choose the tokens of steps 4 * block to 4 * block + 3: 24 bits each, so exact in float32 and in
// float64.
template <class Real>
std::array<Real, 4> uniforms(std::uint64_t seed, std::int64_t sample, std::int64_t block) {
  std::array<Real, 4> numbers;
  const auto four = words(seed, sample, Purpose::tokens, static_cast<std::uint32_t>(block));
  for (std::size_t k = 0; k < 4; ++k) numbers[k] = static_cast<Real>(four[k] >> 8) * static_cast<Real>(0x1p-24);
  return numbers;
}

// A number in 0 .. total - 1, which chooses a sample's prototypes: 53 random bits, scaled.
inline std::int64_t rank_of(std::uint64_t seed, std::int64_t sample, std::int64_t total) {
  const auto two = words(seed, sample, Purpose::prototypes, 0);
  const std::uint64_t bits = (std::uint64_t{two[0]} << 32 | two[1]) >> 11;
  const double scaled = static_cast<double>(bits) * 0x1p-53 * static_cast<double>(total);
  return std::min(static_cast<std::int64_t>(scaled), total - 1);
}

// A latent edit vector a priori: a uniform direction, that of normal numbers, and a norm uniform in [0, norm).
template <class Real>
void latents(std::uint64_t seed, std::int64_t sample, std::int64_t size, double norm, Real* out) {
  const std::int64_t pairs = (size + 1) / 2;
  const auto number = [&](std::int64_t index) {
    const auto four = words(seed, sample, Purpose::latents, static_cast<std::uint32_t>(index / 4));
    return static_cast<double>(four[static_cast<std::size_t>(index % 4)] >> 8) * 0x1p-24;
  };
  std::vector<double> normal(static_cast<std::size_t>(2 * pairs));
  double squares = 0;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const double radius = std::sqrt(-2 * std::log(1 - number(2 * pair)));
    const double angle = 2 * 3.141592653589793 * number(2 * pair + 1);
    normal[static_cast<std::size_t>(2 * pair)] = radius * std::cos(angle);
    normal[static_cast<std::size_t>(2 * pair + 1)] = radius * std::sin(angle);
  }
  normal.resize(static_cast<std::size_t>(size));
  for (const double each : normal) squares += each * each;
  const double length = std::max(std::sqrt(squares), 1e-30), scale = norm * number(2 * pairs);
  for (const double each : normal) *out++ = static_cast<Real>(each / length * scale);
}

}  // namespace compgen
