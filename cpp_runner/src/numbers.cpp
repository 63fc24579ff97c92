#include "numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "errors.h"
#include "text.h"

namespace compgen {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// How many digits the text begins with.
std::size_t digits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

// The text without a sign at its beginning.
std::string_view unsigned_part(std::string_view text) {
  const bool has_sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  return has_sign ? text.substr(1) : text;
}

// Whether it is written as a number without a sign, which the C library would take in other systems than ten, too.
bool is_decimal(std::string_view text) {
  const std::size_t before = digits(text);
  text.remove_prefix(before);
  std::size_t behind = 0;
  if (!text.empty() && text[0] == '.') {
    behind = digits(text.substr(1));
    text.remove_prefix(1 + behind);
  }
  if (before + behind == 0) return false;
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  const auto exponent = unsigned_part(text.substr(1));
  return !exponent.empty() && digits(exponent) == exponent.size();
}

// The text without the underscores that stand between two digits.
std::string without_underscores(std::string_view text) {
  std::string found;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool between = at > 0 && at + 1 < text.size() && is_digit(text[at - 1]) && is_digit(text[at + 1]);
    if (text[at] != '_' || !between) found += text[at];
  }
  return found;
}

std::string_view without_zeros_behind_point(std::string_view text) {
  const auto point = text.find('.');
  const auto behind = text.substr(std::min(point, text.size()));
  const bool zeros = behind.size() > 1 && behind.find_first_not_of('0', 1) == std::string_view::npos;
  return zeros ? text.substr(0, point) : text;
}

bool names_no_number(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return small == "nan" || small == "inf" || small == "infinity";
}

[[noreturn]] void invalid(const std::string& option, const std::string& expected) {
  throw UserError("Invalid value for '" + option + "': Input should be " + expected);
}

}  // namespace

std::uint64_t whole_number(const std::string& option, std::string_view text, std::uint64_t least, std::uint64_t most) {
  const std::string given = without_underscores(stripped(text));
  const auto written = without_zeros_behind_point(unsigned_part(given));
  if (written.empty() || digits(written) != written.size()) {
    invalid(option, "a valid integer, unable to parse string as an integer");
  }
  std::uint64_t number = 0;
  const bool fits = std::from_chars(written.data(), written.data() + written.size(), number).ec == std::errc();
  const bool below_zero = given[0] == '-' && (!fits || number > 0);
  if (below_zero || (fits && number < least)) invalid(option, "greater than or equal to " + std::to_string(least));
  if (!fits || number > most) invalid(option, "less than or equal to " + std::to_string(most));
  return number;
}

std::optional<double> real_number(std::string_view text) {
  const std::string given = without_underscores(stripped(text));
  const auto written = unsigned_part(given);
  if (!is_decimal(written) && !names_no_number(written)) return std::nullopt;
  return std::strtod(given.c_str(), nullptr);
}

double real_number(const std::string& option, std::string_view text, const Bounds& bounds) {
  const auto number = real_number(text);
  if (!number) invalid(option, "a valid number, unable to parse string as a number");
  const auto [least, most] = bounds;
  if (least && *number < *least) invalid(option, "greater than or equal to " + std::to_string(*least));
  if (most && !(*number <= *most)) invalid(option, "less than or equal to " + std::to_string(*most));
  return *number;
}

std::string shown(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  if (std::abs(number) < 1e15 || std::abs(number) >= 1e16) return nlohmann::json(number).dump();
  char digits[32];  // the library would write these with an exponent, as Python does from 1e16 on
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed).ptr);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string shortened(double number) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, number, std::chars_format::general, 6).ptr);
}

}  // namespace compgen
