#include <doctest/doctest.h>

#include "partial.h"

using namespace compgen;

namespace {

std::uint32_t byte_by_byte(std::string_view bytes, std::uint32_t before) {
  std::uint32_t low = before & 0xffff, high = before >> 16;
  for (const char byte : bytes) {
    low = (low + static_cast<unsigned char>(byte)) % 65521;
    high = (high + low) % 65521;
  }
  return high << 16 | low;
}

}  // namespace

TEST_CASE("the sum of any number of bytes is that of one byte after another") {
  CHECK(adler32("Wikipedia", 1) == 0x11E60398);
  std::string bytes;
  for (const char last : {'a', '\xff'}) {  // a number of the largest bytes overflows first
    for (std::size_t size = 0; size < 20'000; size += size < 100 ? 1 : 1237) {
      bytes.resize(size, last);
      CHECK(adler32(bytes, 1) == byte_by_byte(bytes, 1));
      CHECK(adler32(bytes, 65520U << 16 | 65520) == byte_by_byte(bytes, 65520U << 16 | 65520));
    }
    bytes.clear();
  }
}
