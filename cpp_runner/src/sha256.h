// SHA-256 (FIPS 180-4), by which a bundle's manifest names the content of its files.
#pragma once

#include <string>

namespace compgen {

// Whether this processor has instructions for it, which make it five times as fast.
bool has_sha_instructions();

// The digest of some bytes in hexadecimal.
std::string sha256(const std::string& bytes, bool instructions = has_sha_instructions());

}  // namespace compgen
