#include "sources.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <unordered_map>

#include "errors.h"
#include "gzip.h"
#include "text.h"

namespace compgen {
namespace {

constexpr std::size_t SPARES = 8;             // in compgen/data/vocabulary.py
constexpr std::size_t LONGEST = 100;          // characters of a token in a message
constexpr std::int64_t LONGEST_LINE = 1 << 20;  // bytes, as in compgen/data/content.py
constexpr std::size_t BEGINNING = 1 << 16;     // bytes by which line ends are judged: PIECE in compgen/data/content.py
constexpr const char* BLANKS = " \t\n\r\v\f";  // what Python strips bytes of
constexpr std::array<std::string_view, 6> RECORDS = {".jsonl", ".json", ".csv", ".parquet", ".scan", ".unimorph"};

// Of ASCII's control characters, spaces alone may stand in a token, as in Python; see CONTROL in compgen/data/vocabulary.py.
bool has_control(std::string_view token) {
  return std::any_of(token.begin(), token.end(), [](char one) {
    const auto code = static_cast<unsigned char>(one);
    return code == 0x7f || (code < 0x20 && one != '\t' && one != '\n' && one != '\r');
  });
}

// A token in quotes, short enough for a message.
std::string shown(std::string_view token) {
  const std::string whole = represented(token), some = beginning(whole, LONGEST);
  return some.size() < whole.size() ? some + "..." : whole;
}

// Why a token that is none of the vocabulary's tokens of data cannot be one; nothing if it can.
const char* why_not_data(std::string_view token, const std::vector<std::string>& vocabulary) {
  const auto specials = vocabulary.begin() + SPECIALS;
  if (std::find(vocabulary.begin(), specials, token) != specials)
    return "is a special symbol, which models need for themselves: write another token in its place";
  return has_control(token) ? "has a control character, or half of a surrogate pair" : nullptr;
}

// Throws UserError where there are bytes that are not of UTF-8, in the words of compgen/data/content.py.
void require_text(const std::string& text, const std::string& name) {
  const std::size_t at = beyond_utf8(text);
  if (at == std::string::npos) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  std::ostringstream byte;
  byte << std::hex << std::setw(2) << std::setfill('0') << static_cast<int>(static_cast<unsigned char>(text[at]));
  throw UserError(name + ", line " + std::to_string(line) + ": found the byte 0x" + byte.str() +
                  ", expected text in UTF-8: save it so if it is in Latin-1 or another encoding");
}

bool is_piped(const std::string& input) {
  std::error_code none;
  return input == "-" || std::filesystem::is_fifo(input, none);
}

// What a file's name says of its format.
std::string suffix_of(const std::string& input) {
  const std::filesystem::path path = input;
  return (path.extension() == ".gz" ? path.stem() : path).extension().string();
}

std::string_view without_mark(std::string_view text) {  // of byte order
  return text.substr(text.compare(0, 3, "\xef\xbb\xbf") == 0 ? 3 : 0);
}

// Whether a text begins as a list of JSON objects does: `looks_like_json` in compgen/data/content.py.
bool is_list(std::string_view text) {
  const auto open = text.find_first_not_of(BLANKS);
  if (open == std::string_view::npos || text[open] != '[') return false;
  const auto next = text.find_first_not_of(BLANKS, open + 1);
  return next != std::string_view::npos && (text[next] == '{' || text[next] == ']');
}

// A line that has more than spaces, without those at its ends; nothing if there is none.
std::string first_of(const std::string& text) {
  std::istringstream stream{std::string(without_mark(text))};
  for (std::string line; std::getline(stream, line);) {
    const auto first = stripped(line);
    if (!first.empty()) return std::string(first);
  }
  return "";
}

// Throws UserError for data whose lines would be taken for words: by its name, or by its first line.
void require_lines(const std::string& input, const std::string& text) {
  const bool piped = is_piped(input);
  const std::string suffix = piped ? "" : suffix_of(input), first = first_of(text);
  const bool records = piped && (first.compare(0, 2, "{\"") == 0 || is_list(without_mark(text)));
  const bool commands = !has_columns(input, text) && first.compare(0, 3, "IN:") == 0;
  const bool known = std::find(RECORDS.begin(), RECORDS.end(), suffix) != RECORDS.end();
  if (!records && !commands && !known) return;
  throw UserError(named(input) + ": found " + (records ? "JSON" : known ? suffix : "lines of SCAN") +
                  ", expected lines of source tokens, or .tsv: `cgen predict` reads it");
}

// Throws UserError if lines end as no system's do now: all would be one. `check_line_ends` in compgen/data/content.py.
void check_line_ends(const std::string& text, const std::string& input) {
  const std::string_view start = std::string_view(text).substr(0, BEGINNING);
  if (start.find('\n') != std::string_view::npos) return;
  const auto last = start.find_last_not_of(BLANKS), cr = start.find('\r', start.find_first_not_of(BLANKS));
  if (last == std::string_view::npos || cr == std::string_view::npos || cr > last) return;
  throw UserError(named(input) + ": lines end with CR alone, expected LF or CR LF: tr '\\r' '\\n' < FILE > NEW");
}

}  // namespace

std::string named(const std::string& input) { return input == "-" ? "standard input" : input; }

std::string read_all(const std::string& input) {
  std::ifstream file;
  std::error_code none;
  if (input != "-") file.open(input, std::ios::binary);
  const std::string why = std::strerror(errno);  // if it is not open
  if (input != "-" && !std::filesystem::exists(input, none)) throw UserError(input + ": no such file");
  if (!file) throw UserError(input + ": cannot be read: " + why);
  if (std::filesystem::is_directory(input, none)) throw UserError(input + ": a folder, expected a file");
  std::istream& stream = input == "-" ? std::cin : file;
  std::ostringstream content;
  if (stream.peek() != EOF) content << stream.rdbuf();
  const bool failed = input == "-" && std::ferror(stdin) != 0;  // of which std::cin says that it has ended
  if (failed || stream.bad() || !content) throw UserError(named(input) + ": cannot be read to its end");
  std::string text = unpacked(content.str(), named(input));
  require_lines(input, text), check_line_ends(text, input);
  return text;
}

bool has_columns(const std::string& input, const std::string& text) {
  return is_piped(input) ? first_of(text).find('\t') != std::string::npos : suffix_of(input) == ".tsv";
}

std::vector<Tokens> parse_sources(const std::string& text, const std::string& name,
                                  const std::vector<std::string>& vocabulary, Form form) {
  require_text(text, name);
  std::unordered_map<std::string, std::int32_t> ids;
  const std::size_t first = form.raw ? std::size_t{UNK} : SPECIALS + spares_of(vocabulary);
  const auto last_lent = vocabulary.begin() + static_cast<std::ptrdiff_t>(first);
  for (std::size_t id = first; id < vocabulary.size(); ++id) {
    ids[form.raw ? std::to_string(id) : vocabulary[id]] = static_cast<std::int32_t>(id);
  }
  std::istringstream stream{std::string(without_mark(text))};
  std::vector<Tokens> sources;
  for (std::string line; std::getline(stream, line);) {
    const auto where = [&] { return name + ", line " + std::to_string(sources.size() + 1) + ": "; };
    if (!form.raw && static_cast<std::int64_t>(line.size()) > LONGEST_LINE) {
      throw UserError(where() + "found more than " + with_commas(LONGEST_LINE) +
                      " bytes, expected the end of the line before that");
    }
    Tokens source;
    const std::size_t end = form.columns ? line.find('\t') : std::string::npos;
    for (const auto word : split(std::string_view(line).substr(0, end))) {
      auto found = ids.find(std::string(word));
      if (found == ids.end() && !form.raw) {
        if (const char* const why = why_not_data(word, vocabulary)) {
          throw UserError(where() + "found the token " + shown(word) + ", which " + why);
        }
        if (std::find(vocabulary.begin(), last_lent, word) != last_lent) throw special_in_data(std::string(word));
      }
      if (found == ids.end() && form.unknown) {
        const auto id = static_cast<std::int32_t>(vocabulary.size() + form.unknown->size());
        found = ids.emplace(form.unknown->emplace_back(word), id).first;
      }
      if (found == ids.end()) throw UserError(where() + "token " + shown(word) + " is not in the vocabulary");
      source.push_back(found->second);
    }
    if (source.empty() && (form.raw || !stripped(line).empty())) {
      throw UserError(where() + "found an empty source, expected tokens");
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

std::size_t spares_of(const std::vector<std::string>& vocabulary) {
  if (vocabulary.size() < SPECIALS + SPARES) return 0;
  for (std::size_t number = 0; number < SPARES; ++number) {
    if (vocabulary[SPECIALS + number] != "<unk" + std::to_string(number + 1) + ">") return 0;
  }
  return SPARES;
}

UserError special_in_data(const std::string& token) {
  return UserError("token " + represented(token) +
                   " is a special symbol and cannot stand in data, as models need it for themselves: write another token "
                   "in its place");
}

std::vector<std::int32_t> encoded(const std::vector<std::string>& tokens, const std::vector<std::string>& vocabulary) {
  std::unordered_map<std::string, std::int32_t> known;
  for (const auto& token : vocabulary) known.emplace(token, static_cast<std::int32_t>(known.size()));
  std::vector<std::int32_t> ids;
  for (const auto& token : tokens) {
    const auto found = known.find(token);
    if (found == known.end()) {
      throw UserError("unknown token " + represented(token) + ": not among the vocabulary's " +
                      with_commas(static_cast<std::int64_t>(vocabulary.size())) + " tokens");
    }
    if (found->second < SPECIALS) throw special_in_data(token);
    ids.push_back(found->second);
  }
  return ids;
}

Answering answering(std::int64_t best, std::int64_t beam) {
  for (const auto& [name, value] : {std::pair("--best", best), std::pair("--beam", beam)}) {
    if (value >= 1 && value <= WIDEST) continue;
    throw UserError(std::string(name) + " " + std::to_string(value) + ": expected a number from 1 to " +
                    with_commas(WIDEST));
  }
  if (beam > 1 && beam < best) {
    throw UserError("--best " + std::to_string(best) + " needs a beam as wide: leave out --beam " + std::to_string(beam));
  }
  Answering how;
  how.best = best, how.beam = std::max(best, beam);
  return how;
}

}  // namespace compgen
