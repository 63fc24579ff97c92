#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "errors.h"
#include "gzip.h"

using namespace compgen;

namespace {

std::string packed(const std::string& text) {
  Gzip gzip("text.gz");
  const std::string begun = gzip.packed(text);
  return begun + gzip.end();
}

// Only Linux holds a process to a limit of its addresses, and sanitizers end it where memory is short.
#if !defined(__linux__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool UNLIMITED = true;
#else
constexpr bool UNLIMITED = false;
#endif

// Whether a call finds no memory, where there is none but so many pages and pieces of less than a page.
template <class Call>
bool runs_out(Call call, std::size_t pages = 0) {
  std::vector<std::unique_ptr<char[]>> taken;
  taken.reserve(100000);
  rlimit before;
  getrlimit(RLIMIT_AS, &before);
  const rlimit none = {1, before.rlim_max};
  setrlimit(RLIMIT_AS, &none);
  try {
    while (taken.size() < taken.capacity()) taken.push_back(std::make_unique<char[]>(4096));
  } catch (const std::bad_alloc&) {
  }
  taken.resize(taken.size() - pages);
  bool ran_out = false;
  try {
    call();
  } catch (const std::bad_alloc&) {
    ran_out = true;
  }
  setrlimit(RLIMIT_AS, &before);
  return ran_out;
}

}  // namespace

TEST_CASE("what is packed is unpacked, also one after another with zeros between") {
  const std::string long_text(300000, 'x');
  CHECK(unpacked(packed(long_text), "a") == long_text);
  CHECK(unpacked(packed("") + packed("one") + std::string(3, '\0') + packed(" two"), "a") == "one two");
  std::string mixed(200000, ' ');  // which cannot be packed, so that packing it fills more than one piece
  std::uint32_t state = 1;
  for (char& byte : mixed) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  CHECK(unpacked(packed(mixed), "a") == mixed);
  CHECK(unpacked("plain", "a.txt") == "plain");
  CHECK(unpacked("", "a.gz").empty());
}

TEST_CASE("damaged and cut data are refused") {
  const std::string whole = packed("some words");
  CHECK_THROWS_AS(unpacked("plain", "a.gz"), UserError);
  CHECK_THROWS_AS(unpacked(whole.substr(0, whole.size() - 1), "a"), UserError);
  std::string damaged = whole;
  damaged[damaged.size() - 5] ^= 1;
  CHECK_THROWS_AS(unpacked(damaged, "a"), UserError);
}

TEST_CASE("where memory is short, data are not called damaged" * doctest::skip(UNLIMITED)) {
  const std::string text = packed("some words");
  const auto source = [&text, at = std::size_t{0}](char* to, std::size_t most) mutable {
    const std::size_t count = text.copy(to, most, at);
    at += count;
    return count;
  };
  Unpacker opened(source, "a");
  char piece[5];  // so that zlib must keep a part
  CHECK(runs_out([&] { opened.read(piece, sizeof piece); }));
  std::unique_ptr<Gzip> gzip;
  CHECK(runs_out([&] { gzip = std::make_unique<Gzip>("a.gz"); }));
  std::unique_ptr<Unpacker> unpacker;
  std::size_t needed = 0;  // pages: first our own buffer does not fit, then zlib's state
  while (runs_out([&] { unpacker = std::make_unique<Unpacker>(source, "a"); }, needed)) ++needed;
  CHECK(needed > 16);
}
