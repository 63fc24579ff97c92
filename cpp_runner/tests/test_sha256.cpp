#include <doctest/doctest.h>

#include "sha256.h"

using compgen::sha256;

TEST_CASE("SHA-256 gives the standard's examples") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("lengths around the padding's block are padded right") {
  // Digests of so many letters b, by another implementation.
  CHECK(sha256(std::string(55, 'b')) == "eb2c86e932179f4ba13fe8715a26124b77d6bad290b9b4c1cc140cf633300c19");
  CHECK(sha256(std::string(56, 'b')) == "a5fc6e203a4c2b657d0d153885932414b2ffc6a93f0f8bf8b3183315e5a7212c");
  CHECK(sha256(std::string(64, 'b')) == "a0fab1377f49a759b57f63318262ebe89fabfc990e8e93ceac2984561482b9d4");
}

TEST_CASE("the processor's instructions give what the definition gives") {
  std::string bytes;
  for (int size = 0; size < 300; ++size) {
    CHECK(sha256(bytes, false) == sha256(bytes));
    bytes += static_cast<char>(size * 37 + 11);
  }
  CHECK(sha256(std::string(1'000'000, 'a'), false) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
