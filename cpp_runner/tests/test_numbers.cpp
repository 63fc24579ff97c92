#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "errors.h"
#include "numbers.h"

using namespace compgen;

namespace {

// What is said of a number from 1 to 100, or the number.
std::string read(const char* text) {
  try {
    return std::to_string(whole_number("--start", text, 1, 100));
  } catch (const UserError& error) {
    return error.what();
  }
}

std::string read_real(const char* text) {
  try {
    return shown(real_number("--support", text, {0, 1}));
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("whole numbers are in tens, whatever digit they begin with") {
  for (const char* text : {"64", "064", "+64", " 0000000000000000000000000064 ", "6_4", "64.0", "6_4.00"}) CHECK(read(text) == "64");
  for (const char* text : {"", "+", "0x40", "0b1", "0o7", "1'0", "1__0", "_1", "1_", "6.", ".0", "6.5", "6e1", "--6", "true", "6 4"}) {
    CHECK(read(text) ==
          "Invalid value for '--start': Input should be a valid integer, unable to parse string as an integer");
  }
  for (const char* text : {"0", "-1", "-00", "-99999999999999999999999"}) {
    CHECK(read(text) == "Invalid value for '--start': Input should be greater than or equal to 1");
  }
  for (const char* text : {"101", "18446744073709551617", "99999999999999999999999"}) {
    CHECK(read(text) == "Invalid value for '--start': Input should be less than or equal to 100");
  }
  const std::uint64_t most = ~std::uint64_t{0};
  CHECK(whole_number("--seed", "18446744073709551615", 0, most) == most);
  CHECK_THROWS_AS(whole_number("--seed", "18446744073709551616", 0, most), UserError);
}

TEST_CASE("numbers with points and exponents are in tens, too") {
  for (const char* text : {".5", "0.5", "+5e-1", " 00.50 ", "5E-01", "0.5_0", "0_0.5"}) CHECK(read_real(text) == "0.5");
  for (const char* text : {"", ".", "e1", "0x1p-1", "1e", "1e+", "0.5x", "0,5", "nan(1)", "infinit", "0.5__0", "0.5_"}) {
    CHECK(read_real(text) ==
          "Invalid value for '--support': Input should be a valid number, unable to parse string as a number");
  }
  for (const char* text : {"nan", "NaN", "inf", "+Infinity", "1.1", "1e999"}) {
    CHECK(read_real(text) == "Invalid value for '--support': Input should be less than or equal to 1");
  }
  for (const char* text : {"-inf", "-0.1"}) {
    CHECK(read_real(text) == "Invalid value for '--support': Input should be greater than or equal to 0");
  }
  CHECK(std::isnan(*real_number("nan")));
}

TEST_CASE("values are shown as Python shows them") {
  const auto value = nlohmann::ordered_json::parse(R"({"b": [null, true, "it's", 1e15, -2], "a": {}})");
  CHECK(represented_value(value) == "{'b': [None, True, \"it's\", 1000000000000000.0, -2], 'a': {}}");
}

TEST_CASE("numbers are shown as Python shows them") {
  CHECK(shown(2) == "2.0");
  CHECK(shown(0.1) == "0.1");
  CHECK(shown(1e15) == "1000000000000000.0");
  CHECK(shown(-1234567890123456.5) == "-1234567890123456.5");
  CHECK(shown(9999999999999998.0) == "9999999999999998.0");
  CHECK(shown(1e16) == "1e+16");
  CHECK(shown(-std::nan("")) == "nan");
  CHECK(shown(-INFINITY) == "-inf");
  CHECK(shortened(0.5) == "0.5");
  CHECK(shortened(2) == "2");
  CHECK(shortened(-1234567) == "-1.23457e+06");
  CHECK(shortened(1e-7) == "1e-07");
  CHECK(shortened(INFINITY) == "inf");
}
