// Text as compgen's Python reads it: lines and tokens end where Unicode has a line end or a space (`str.splitlines` and
// `str.split`), not in ASCII alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace compgen {

// Throws UserError unless the text is UTF-8.
void require_utf8(std::string_view text);

// The first byte that is not of UTF-8; npos if all are.
std::size_t beyond_utf8(std::string_view text);

// The lines of a text in UTF-8, without their ends; views of it.
std::vector<std::string_view> lines_of(std::string_view text);

// What stands between the spaces of a line in UTF-8; views of it.
std::vector<std::string_view> split(std::string_view line);

// A text in UTF-8 without the spaces at its ends; a view of it.
std::string_view stripped(std::string_view text);

// Texts with something between each two.
template <class Texts>
std::string joined(const Texts& texts, std::string_view between = " ") {
  std::string whole;
  for (const auto& text : texts) whole.append(whole.empty() ? std::string_view() : between).append(text);
  return whole;
}

// A text in UTF-8 as Python's `repr` shows it: in quotes, with escapes for what is not printable. (Code points that Unicode
// has not assigned are shown as they are.)
std::string represented(std::string_view text);

// The same without spaces at its ends, cut to so many characters: Python's `{text.strip()!r:.80}`.
std::string quoted(std::string_view text, std::size_t most);

// A text for a message on one line of UTF-8, whatever bytes it has: names of files may have any.
std::string printable(std::string_view text);

// The first characters of a text in UTF-8.
std::string beginning(std::string_view text, std::size_t characters);

// A number for a message, with commas between its thousands.
std::string with_commas(std::int64_t number);

}  // namespace compgen
