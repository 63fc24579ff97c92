#include "sha256.h"

#include <array>
#include <cstdint>
#include <cstdio>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace compgen {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> K = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

std::uint32_t rotate(std::uint32_t x, int by) { return x >> by | x << (32 - by); }

void compress(State& state, const unsigned char* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) {
    w[t] = std::uint32_t{block[4 * t]} << 24 | std::uint32_t{block[4 * t + 1]} << 16 |
           std::uint32_t{block[4 * t + 2]} << 8 | std::uint32_t{block[4 * t + 3]};
  }
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
    const std::uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const std::uint32_t one = h + s1 + ((e & f) ^ (~e & g)) + K[t] + w[t];
    const std::uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const std::uint32_t two = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
  }
  const State add = {a, b, c, d, e, f, g, h};
  for (std::size_t k = 0; k < 8; ++k) state[k] += add[k];
}

void compress_all(State& state, const unsigned char* data, std::size_t size) {
  for (std::size_t at = 0; at < size; at += 64) compress(state, data + at);
}

#if defined(__x86_64__)
constexpr unsigned SHA_BIT = 1U << 29;  // of EBX in leaf 7

// The same by the processor's instructions, which take four rounds at a time and have the state as (a, b, e, f) and
// (c, d, g, h), the last in the lowest lane.
__attribute__((target("sha,sse4.1"))) void compress_by_instructions(State& state, const unsigned char* data,
                                                                     std::size_t size) {
  const auto load = [](const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); };
  const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  const __m128i cdab = _mm_shuffle_epi32(load(&state[0]), 0xB1), efgh = _mm_shuffle_epi32(load(&state[4]), 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (std::size_t at = 0; at < size; at += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];  // the last 16 words of the schedule
    for (std::size_t k = 0; k < 4; ++k) w[k] = _mm_shuffle_epi8(load(data + at + 16 * k), big_endian);
    for (std::size_t t = 0; t < 16; ++t) {
      __m128i& now = w[t % 4];
      const __m128i next = w[(t + 1) % 4], third = w[(t + 2) % 4], last = w[(t + 3) % 4];
      const __m128i rounds = _mm_add_epi32(now, load(&K[4 * t]));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, rounds);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(rounds, 0x0E));
      now = _mm_add_epi32(_mm_sha256msg1_epu32(now, next), _mm_alignr_epi8(last, third, 4));
      now = _mm_sha256msg2_epu32(now, last);
    }
    abef = _mm_add_epi32(abef, abef_before), cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[0]), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), _mm_alignr_epi8(dchg, feba, 8));
}

bool ask_processor() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & SHA_BIT) != 0;
}
#else
void compress_by_instructions(State& state, const unsigned char* data, std::size_t size) {
  compress_all(state, data, size);
}

bool ask_processor() { return false; }
#endif

}  // namespace

bool has_sha_instructions() {
  static const bool found = ask_processor();
  return found;
}

std::string sha256(const std::string& bytes, bool instructions) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto compress = instructions ? compress_by_instructions : compress_all;
  const std::size_t whole = bytes.size() / 64 * 64;
  compress(state, reinterpret_cast<const unsigned char*>(bytes.data()), whole);
  std::string tail = bytes.substr(whole) + '\x80';
  tail.resize(tail.size() <= 56 ? 56 : 120, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) tail += static_cast<char>(std::uint64_t{bytes.size()} * 8 >> shift & 0xFF);
  compress(state, reinterpret_cast<const unsigned char*>(tail.data()), tail.size());
  std::string hex(64, '0');
  for (std::size_t k = 0; k < 8; ++k) std::snprintf(&hex[8 * k], 9, "%08x", state[k]);  // the last NUL is the string's
  return hex;
}

}  // namespace compgen
