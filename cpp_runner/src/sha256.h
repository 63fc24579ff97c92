// SHA-256 (FIPS 180-4), by which a bundle's manifest names the content of its files.
#pragma once

#include <string>

namespace compgen {

// The digest of some bytes in hexadecimal.
std::string sha256(const std::string& bytes);

}  // namespace compgen
