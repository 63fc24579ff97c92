// Numbers in options, as Python reads them: in tens alone, whatever digit they begin with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace compgen {

// The whole number that is given for an option: digits, perhaps with a sign before them. Throws UserError: it is
// another text, or not from `least` to `most`.
std::uint64_t whole_number(const std::string& option, std::string_view text, std::uint64_t least, std::uint64_t most);

// A number with a point or an exponent, if it has one. It may be infinite, or none ("nan"), which only bounds refuse.
// Nothing if it is another text.
std::optional<double> real_number(std::string_view text);

// What the number of an option must not be below or above. Without `most` it may be none, too.
struct Bounds {
  std::optional<int> least, most;
};

// The same of an option. Throws UserError: it is another text, or not within the bounds.
double real_number(const std::string& option, std::string_view text, const Bounds& bounds);

// A number as Python shows it.
std::string shown(double number);

}  // namespace compgen
