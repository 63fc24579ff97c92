// Numbers in options, as Python reads them: in tens alone, whatever digit they begin with, perhaps with an underscore
// between two digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text.h"

namespace compgen {

// The whole number that is given for an option: digits, perhaps with a sign before them and `.0` behind. Throws
// UserError: it is another text, or not from `least` to `most`.
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

// The same in six digits, as Python's format `g` has it.
std::string shortened(double number);

// A value of JSON as Python shows it.
template <class Json>
std::string represented_value(const Json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.template get<bool>() ? "True" : "False";
  if (value.is_string()) return represented(std::string_view(value.template get_ref<const std::string&>()));
  if (value.is_number_float()) return shown(value.template get<double>());
  if (value.is_number()) return value.dump();
  std::string text;
  for (const auto& [name, part] : value.items()) {
    text += (text.empty() ? "" : ", ") + (value.is_object() ? represented(std::string_view(name)) + ": " : "");
    text += represented_value(part);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

}  // namespace compgen
