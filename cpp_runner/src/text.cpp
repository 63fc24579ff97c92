#include "text.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "errors.h"

namespace compgen {
namespace {

// A character: its code point, and how many bytes it has; none if it is no UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};

Character character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t place) { return static_cast<unsigned char>(text[place]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + bytes > text.size()) return {};
  auto code = static_cast<char32_t>(first & (0x7f >> bytes));
  for (std::size_t k = 1; k < bytes; ++k) {
    if ((byte(at + k) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(at + k) & 0x3f);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return overlong || surrogate || code > 0x10ffff ? Character{} : Character{code, bytes};
}

bool ends_line(char32_t code) {
  return (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

bool is_blank(char32_t code) {
  return ends_line(code) || code == 0x09 || code == 0x1f || code == 0x20 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x202f || code == 0x205f || code == 0x3000;
}

// Whether Python's `repr` shows a character as it is: not so what is no letter, sign or mark, but the space.
bool is_shown(char32_t code) {
  constexpr std::pair<char32_t, char32_t> HIDDEN[] = {  // Unicode's formatting characters, and those for private use
      {0xad, 0xad},     {0x600, 0x605},   {0x61c, 0x61c},   {0x6dd, 0x6dd},     {0x70f, 0x70f},
      {0x890, 0x891},   {0x8e2, 0x8e2},   {0x180e, 0x180e}, {0x200b, 0x200f},   {0x202a, 0x202e},
      {0x2060, 0x206f}, {0xe000, 0xf8ff}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb},   {0xf0000, 0x10ffff}};
  if (code < 0x20 || (code >= 0x7f && code < 0xa0) || (is_blank(code) && code != ' ')) return false;
  return std::none_of(std::begin(HIDDEN), std::end(HIDDEN),
                      [code](const auto& range) { return range.first <= code && code <= range.second; });
}

// A code point as an escape of Python: \x7f, \u2028, \U000f0000.
std::string escaped(char32_t code) {
  const int digits = code < 0x100 ? 2 : code < 0x10000 ? 4 : 8;
  std::string found = digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
  for (int place = digits - 1; place >= 0; --place) found += "0123456789abcdef"[code >> (4 * place) & 15];
  return found;
}

// What stands between the characters that are ends; with `empty`, also where there is nothing between two of them.
template <class Ends>
std::vector<std::string_view> parts(std::string_view text, Ends ends, bool empty) {
  std::vector<std::string_view> found;
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    if (empty || end > begin) found.push_back(text.substr(begin, end - begin));
  };
  for (std::size_t at = 0; at < text.size();) {
    const Character here = character(text, at);
    const std::size_t next = at + std::max<std::size_t>(here.bytes, 1);
    if (ends(here.code)) {
      add(at);
      const bool pair = empty && here.code == '\r' && next < text.size() && text[next] == '\n';
      begin = pair ? next + 1 : next;
    }
    at = std::max(next, begin);
  }
  if (begin < text.size()) add(text.size());
  return found;
}

}  // namespace

std::size_t beyond_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character(text, at).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

void require_utf8(std::string_view text) {
  const std::size_t at = beyond_utf8(text);
  if (at != std::string_view::npos) throw UserError("not UTF-8: byte " + std::to_string(at));
}

std::vector<std::string_view> lines_of(std::string_view text) { return parts(text, ends_line, true); }

std::vector<std::string_view> split(std::string_view line) { return parts(line, is_blank, false); }

std::string_view stripped(std::string_view text) {
  const auto found = split(text);
  if (found.empty()) return {};
  const auto begin = static_cast<std::size_t>(found.front().data() - text.data());
  return text.substr(begin, static_cast<std::size_t>(found.back().data() + found.back().size() - found.front().data()));
}

std::string represented(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos, has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string found(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const Character here = character(text, at);
    const std::size_t bytes = std::max<std::size_t>(here.bytes, 1);
    const auto code = here.bytes == 0 ? static_cast<unsigned char>(text[at]) : here.code;
    if (code == '\n') found += "\\n";
    else if (code == '\r') found += "\\r";
    else if (code == '\t') found += "\\t";
    else if (here.bytes == 0 || !is_shown(code)) found += escaped(code);
    else if (code == '\\' || code == static_cast<unsigned char>(quote)) found += '\\', found += static_cast<char>(code);
    else found += text.substr(at, bytes);
    at += bytes;
  }
  return found += quote;
}

std::string quoted(std::string_view text, std::size_t most) { return beginning(represented(stripped(text)), most); }

std::string printable(std::string_view text) {
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const Character here = character(text, at);
    const std::size_t bytes = std::max<std::size_t>(here.bytes, 1);
    const bool control = here.code < 0x20 || (here.code >= 0x7f && here.code < 0xa0) || ends_line(here.code);
    if (here.bytes == 0) line += "\ufffd";
    else if (control) line += ' ';
    else line += text.substr(at, bytes);
    at += bytes;
  }
  return line;
}

std::string beginning(std::string_view text, std::size_t characters) {
  std::size_t end = 0;
  for (; characters > 0 && end < text.size(); --characters) end += std::max<std::size_t>(character(text, end).bytes, 1);
  return std::string(text.substr(0, end));
}

std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

}  // namespace compgen
