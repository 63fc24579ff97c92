#include <doctest/doctest.h>

#include "errors.h"
#include "text.h"

using namespace compgen;

TEST_CASE("lines end where Unicode has line ends, and a last one need not") {
  using Lines = std::vector<std::string_view>;
  CHECK(lines_of("").empty());
  CHECK(lines_of("a\n\nb\r\nc\rd") == Lines{"a", "", "b", "c", "d"});
  CHECK(lines_of("a\n") == Lines{"a"});
  CHECK(lines_of("a\u2028b\u0085c\x1d\u2029") == Lines{"a", "b", "c", ""});
}

TEST_CASE("tokens are separated by white space of any kind") {
  using Words = std::vector<std::string_view>;
  CHECK(split(" a\tb\u3000\u00a0dé\u2009").size() == 3);
  CHECK(split("a\u200bb") == Words{"a\u200bb"});  // a space of no width is none
  CHECK(split(" \x1f ").empty());
}

TEST_CASE("what is no UTF-8 is refused") {
  for (const char* text : {"", "a", "é", "→", "𝄞", "\xf4\x8f\xbf\xbf"}) CHECK_NOTHROW(require_utf8(text));
  for (const char* text : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80",
                           "\xff", "a\xe2\x86"}) {
    CHECK_THROWS_AS(require_utf8(text), UserError);
  }
}

TEST_CASE("texts in messages are short and on one line") {
  CHECK(quoted(" a\n b ", 80) == "'a\\n b'");
  CHECK(quoted("ééé", 3) == "'éé");
  CHECK(with_commas(1'234'567) == "1,234,567");
}

TEST_CASE("texts in quotes are as Python shows them") {
  CHECK(represented("it's") == "\"it's\"");
  CHECK(represented("\"it's\"") == "'\"it\\'s\"'");
  CHECK(represented("a\\b\t\r\n\x1f\x7f") == "'a\\\\b\\t\\r\\n\\x1f\\x7f'");
  CHECK(represented("é \u00a0\u00ad\u200b\u2028\ue000\U000f0000") == "'é \\xa0\\xad\\u200b\\u2028\\ue000\\U000f0000'");
  CHECK(represented("\xff") == "'\\xff'");
}

TEST_CASE("the beginning of a text is whole characters") {
  CHECK(beginning("a\u00e9\u4e2db", 3) == "a\u00e9\u4e2d");
  CHECK(beginning("a\u00e9", 9) == "a\u00e9");
  CHECK(beginning("", 2).empty());
  CHECK(beginning("\xff\xffx", 2) == "\xff\xff");  // what is no UTF-8 counts by the byte
}

TEST_CASE("a message is one line of UTF-8, whatever a file is called") {
  CHECK(printable("é → 𝄞") == "é → 𝄞");
  CHECK(printable("a\nb\tc\x1b[1m\x7f") == "a b c [1m ");
  CHECK(printable("a\u0085b\u2028c") == "a b c");
  CHECK(printable("a\xff\xc3") == "a\ufffd\ufffd");
}

TEST_CASE("spaces at the ends are taken away, not those within") {
  CHECK(stripped(" \ta  b\u3000\r\n") == "a  b");
  CHECK(stripped("a") == "a");
  CHECK(stripped(" \t").empty());
  CHECK(stripped("").empty());
}

TEST_CASE("texts have something between each two") {
  CHECK(joined(std::vector<std::string>{}, ", ").empty());
  CHECK(joined(std::vector<std::string>{"a", "b", "c"}, ", ") == "a, b, c");
  CHECK(joined(split(" a  b ")) == "a b");
}
