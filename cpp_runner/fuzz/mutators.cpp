#include "mutators.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "readers.h"

namespace compgen::fuzz {
namespace {

Mutate mutate_bytes = nullptr;

using Json = nlohmann::ordered_json;
using Rng = std::minstd_rand;

constexpr std::size_t GROWTH = 64;  // bytes by which a piece may grow at a time

std::size_t below(Rng& rng, std::size_t count) { return rng() % std::max<std::size_t>(count, 1); }

template <class List>
auto& one_of(const List& list, Rng& rng) {
  return list[below(rng, std::size(list))];
}

std::string changed_bytes(std::string input, Rng&) {
  const std::size_t size = input.size();
  input.resize(size + GROWTH);
  input.resize(mutate_bytes(reinterpret_cast<std::uint8_t*>(input.data()), size, input.size()));
  return input;
}

// JSON: a value somewhere within is replaced, left out, doubled or renamed.

const Json& odd_value(Rng& rng) {
  static const std::vector<Json> odd = {
      nullptr, true, false, 0, 1, -1, 2, 255, 65536, 2147483648, 9007199254740993, 4611686018427387904,
      std::uint64_t{1} << 63, ~std::uint64_t{0}, -9223372036854775807, 0.5, -0.0, 1e300, 1e-300, "", "a", "float64",
      "recurrent", "grammar", "transformer", "predictor", "encoder.onnx", "../x", "é→", Json::array(), Json::object(),
      Json::array({1}), Json::array({1.5, 0}), Json({{"a", 1}})};
  return one_of(odd, rng);
}

void change_leaf(Json& value, Rng& rng) {
  if (value.is_string() && rng() % 2) {
    value = changed_bytes(value.get<std::string>(), rng);
  } else if (value.is_number_integer() && rng() % 2) {
    value = static_cast<std::int64_t>(value.get<std::uint64_t>() + below(rng, 5) - 2);
  } else {
    value = odd_value(rng);
  }
}

void change_value(Json& value, Rng& rng, const Json& whole) {
  if (!value.is_structured() || value.empty()) return change_leaf(value, rng);
  const auto at = std::next(value.begin(), static_cast<std::ptrdiff_t>(below(rng, value.size())));
  if (rng() % 8 && (at->is_structured() || rng() % 2)) return change_value(*at, rng, whole);
  const auto way = below(rng, 6);
  if (way == 0) value.erase(at);
  else if (way == 1) *at = odd_value(rng);
  else if (way == 2) *at = whole;
  else if (way == 3 && value.is_array()) value.push_back(Json(*at));
  else if (way == 4 && value.is_object()) value[changed_bytes(at.key(), rng)] = Json(*at);
  else change_leaf(*at, rng);
}

std::string changed_json(const std::string& input, Rng& rng) {
  Json value = rng() % 8 ? Json::parse(input, nullptr, false) : Json(Json::value_t::discarded);
  if (value.is_discarded()) return changed_bytes(input, rng);
  const Json whole = value.size() < 8 ? value : Json();
  change_value(value, rng, whole);
  return value.dump(-1, ' ', rng() % 2, Json::error_handler_t::replace);
}

// safetensors: the header, with its length, or the numbers behind it.
std::string changed_arrays(const std::string& input, Rng& rng) {
  std::uint64_t length = 0;
  if (input.size() >= 8) std::memcpy(&length, input.data(), 8);
  if (input.size() < 8 || length > input.size() - 8 || rng() % 8 == 0) return changed_bytes(input, rng);
  std::string head = input.substr(8, static_cast<std::size_t>(length)), body = input.substr(8 + head.size());
  if (rng() % 2) head = changed_json(head, rng);
  else body = changed_bytes(body, rng);
  length = head.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + head + body;
}

// A pool has a number of prototypes before it.
std::string changed_pool(const std::string& input, Rng& rng) {
  return input.empty() ? input : input[0] + changed_arrays(input.substr(1), rng);
}

// Protocol buffers: a field of a message, or of one within it.

struct Field {
  std::uint64_t number = 0, wire = 0, value = 0;  // of varints
  std::string bytes;                              // of all others
};

std::optional<std::uint64_t> varint(std::string_view& data) {
  std::uint64_t value = 0;
  for (unsigned place = 0; place < 10 && place < data.size(); ++place) {
    const auto byte = static_cast<std::uint8_t>(data[place]);
    value |= static_cast<std::uint64_t>(byte & 127U) << (7U * place);
    if (byte >= 128) continue;
    data.remove_prefix(place + 1);
    return value;
  }
  return std::nullopt;
}

std::string spelled(std::uint64_t value) {
  std::string found;
  for (; value > 127; value >>= 7) found += static_cast<char>((value & 127) | 128);
  return found + static_cast<char>(value);
}

std::string spelled(const std::vector<Field>& fields) {
  std::string found;
  for (const Field& field : fields) {
    found += spelled(field.number << 3 | field.wire);
    if (field.wire == 0) found += spelled(field.value);
    if (field.wire == 2) found += spelled(field.bytes.size());
    found += field.bytes;
  }
  return found;
}

std::optional<std::vector<Field>> fields_of(std::string_view data) {
  std::vector<Field> found;
  while (!data.empty()) {
    const auto tag = varint(data);
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    Field field{*tag >> 3, *tag & 7, 0, ""};
    std::uint64_t size = field.wire == 1 ? 8 : field.wire == 5 ? 4 : 0;
    if (field.wire == 0 || field.wire == 2) {
      const auto number = varint(data);
      if (!number) return std::nullopt;
      (field.wire ? size : field.value) = *number;
    } else if (!size) {
      return std::nullopt;
    }
    if (size > data.size()) return std::nullopt;
    field.bytes = data.substr(0, static_cast<std::size_t>(size));
    data.remove_prefix(field.bytes.size());
    found.push_back(std::move(field));
  }
  return found;
}

std::string changed_message(const std::string& input, Rng& rng) {
  auto fields = fields_of(input);
  if (!fields || fields->empty() || rng() % 16 == 0) return changed_bytes(input, rng);
  const std::size_t at = below(rng, fields->size());
  Field& field = (*fields)[at];
  if (field.wire == 2 && rng() % 4 && fields_of(field.bytes)) {
    field.bytes = changed_message(field.bytes, rng);
    return spelled(*fields);
  }
  static constexpr std::uint64_t NUMBERS[] = {1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 20, 22, 25, 1 << 20};
  const auto way = below(rng, 7);
  if (way == 0) fields->erase(fields->begin() + static_cast<std::ptrdiff_t>(at));
  else if (way == 1) fields->push_back(Field(field));
  else if (way == 2) field.number = one_of(NUMBERS, rng);
  else if (way == 3) field = {field.number, 0, one_of(NUMBERS, rng), ""};
  else if (way == 4) field = {field.number, 2, 0, spelled(*fields)};  // the message within itself
  else if (way == 5) fields->push_back({one_of(NUMBERS, rng), 2, 0, "\x0a\x08location\x12\x01x"});
  else if (field.wire == 0) field.value = rng() % 2 ? below(rng, 16) : ~std::uint64_t{0} >> below(rng, 64);
  else if (field.wire == 2) field.bytes = changed_bytes(field.bytes, rng);
  return spelled(*fields);
}

// Lines of words.

std::vector<std::string> pieces(const std::string& text, char between) {
  std::vector<std::string> found(1);
  for (const char c : text) {
    if (c == between) found.emplace_back();
    else found.back() += c;
  }
  return found;
}

std::string joined(const std::vector<std::string>& parts, char between) {
  std::string text;
  for (std::size_t k = 0; k < parts.size(); ++k) text += (k ? std::string(1, between) : "") + parts[k];
  return text;
}

std::string changed_words(const std::string& input, Rng& rng) {
  static const std::vector<std::string> WORDS = {
      "NT_1", "NT_2", "NT_3", "NT_99", "NT_100", "NT_0", "NT_x", "###", "##", "##A", "##B", "##ROOT", "ROOT", "A", "=>",
      "#", "<unk>", "a", "b", "(", "é", "===", "\t", "\u2028", "\u00a0", "\x1f", "\ufeff", "</s>", "\r"};
  auto lines = pieces(input, '\n');
  auto& line = lines[below(rng, lines.size())];
  auto words = pieces(line, ' ');
  const auto at = static_cast<std::ptrdiff_t>(below(rng, words.size()));
  const auto way = below(rng, 9);
  const std::string copy = line;
  if (way == 0) return changed_bytes(input, rng);
  if (way == 1) words[static_cast<std::size_t>(at)] = one_of(WORDS, rng);
  else if (way == 2) words.insert(words.begin() + at, one_of(WORDS, rng));
  else if (way == 3) words.erase(words.begin() + at);
  else if (way == 4) words[static_cast<std::size_t>(at)] = one_of(pieces(one_of(lines, rng), ' '), rng);
  if (way == 5) {
    const std::vector<std::string> rest(words.begin() + at, words.end());  // no range of `words` may be inserted there
    words.insert(words.end(), rest.begin(), rest.end());
  }
  line = joined(words, ' ');
  if (way == 6) lines.push_back(copy);
  else if (way == 7) line += ' ' + std::string(one_of(lines, rng));
  else if (way == 8) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(below(rng, lines.size())));
  return joined(lines, '\n');
}

// gzip: what is packed, packed again.

std::string unpacked(const std::string& input) {
  z_stream stream = {};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return "";
  std::string found(1 << 14, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(found.data()), stream.avail_out = static_cast<uInt>(found.size());
  inflate(&stream, Z_FINISH);
  found.resize(found.size() - stream.avail_out);
  inflateEnd(&stream);
  return found;
}

std::string packed(const std::string& text, int level) {
  z_stream stream = {};
  if (deflateInit2(&stream, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  std::string found(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(found.data()), stream.avail_out = static_cast<uInt>(found.size());
  deflate(&stream, Z_FINISH);
  found.resize(found.size() - stream.avail_out);
  deflateEnd(&stream);
  return found;
}

std::string changed_gzip(const std::string& input, Rng& rng) {
  const auto way = below(rng, 6);
  if (way == 0) return changed_bytes(input, rng);
  const int level = static_cast<int>(below(rng, 10));
  const std::string text = changed_words(unpacked(input), rng);
  if (way == 1) return packed(text, level) + input;
  if (way == 2) return packed(text, level) + std::string(below(rng, 4), '\0') + packed("b", level);
  if (way == 3) return changed_bytes(packed(text, level), rng);
  return packed(text, level);
}

std::string changed_sources(const std::string& input, Rng& rng) {
  const bool is_packed = input.compare(0, 2, "\x1f\x8b") == 0;
  if (rng() % 16 == 0) return is_packed ? unpacked(input) : packed(input, 6);
  return is_packed ? changed_gzip(input, rng) : changed_words(input, rng);
}

std::string changed_line(const std::string& input, Rng& rng) {
  if (input.empty()) return changed_bytes(input, rng);
  const std::string rest = input.substr(1);
  return input[0] + (input[0] % 2 ? changed_words(rest, rng) : changed_json(rest, rng));
}

// Files of a bundle, or of a run.

std::string changed_file(const std::string& name, const std::string& content, Rng& rng) {
  const std::string kind = name.substr(name.find('.'));
  if (kind == ".json") return changed_json(content, rng);
  if (kind == ".safetensors") return changed_arrays(content, rng);
  if (kind == ".onnx") return changed_message(content, rng);
  return changed_words(content, rng);
}

template <class Change>
std::string changed_parts(const std::string& input, std::size_t names, Rng& rng, Change change) {
  Parts parts = parts_of(input, names);
  if (parts.empty()) return changed_bytes(input, rng);
  const std::size_t at = rng() % 3 ? below(rng, parts.size()) : 0;
  auto& [name, content] = parts[at];
  const auto way = below(rng, 24);
  if (way == 0) parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
  else if (way == 1) name = static_cast<std::uint8_t>(below(rng, names));
  else content = change(name, content);
  return whole_of(parts);
}

std::string changed_bundle(const std::string& input, Rng& rng) {
  constexpr std::size_t FILES = std::size(BUNDLE_FILES);
  return changed_parts(input, FILES + 1, rng, [&](std::uint8_t name, const std::string& content) {
    return changed_file(BUNDLE_FILES[name % FILES], content, rng);
  });
}

std::string changed_run(const std::string& input, Rng& rng) {
  return changed_parts(input, 4, rng, [&](std::uint8_t name, const std::string& content) {
    return name == 2 ? changed_words(content, rng) : changed_json(content, rng);
  });
}

// A binary model of KenLM: some bytes, behind those that say that it is one.
std::string changed_model(const std::string& input, Rng& rng) {
  constexpr std::size_t HEADER = 88, SAID = 80;  // bytes that are the same in all; what a model says of itself
  if (input.size() <= HEADER || rng() % 16 == 0) return changed_bytes(input, rng);
  static constexpr unsigned char ODD[] = {0, 1, 2, 3, 127, 128, 255, 0x55};
  std::string found = input;
  for (std::size_t count = 1 + below(rng, 4); count > 0; --count) {
    const std::size_t room = rng() % 3 ? found.size() - HEADER : std::min(SAID, found.size() - HEADER);
    const std::size_t at = HEADER + below(rng, room), size = std::min<std::size_t>(1 + below(rng, 8), found.size() - at);
    const auto odd = static_cast<char>(rng() % 2 ? one_of(ODD, rng) : rng());
    std::fill_n(found.begin() + static_cast<std::ptrdiff_t>(at), size, odd);
  }
  return found;
}

// The same in text, ARPA: its words, or one of its numbers.
std::string changed_arpa(const std::string& input, Rng& rng) {
  static const std::vector<std::string> NUMBERS = {"0",   "1",   "-1",    "nan",        "inf",    "-inf",
                                                   "1e39", "-99", "-1e39", "2147483648", "4294967296", "1e-50"};
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < input.size(); ++at) {
    if (input[at] >= '0' && input[at] <= '9') places.push_back(at);
  }
  if (places.empty() || rng() % 2) return changed_words(input, rng);
  const std::size_t at = one_of(places, rng), end = input.find_first_not_of("0123456789.", at);
  return input.substr(0, at) + one_of(NUMBERS, rng) + (end == std::string::npos ? "" : input.substr(end));
}

using Change = std::string (*)(const std::string&, Rng&);
struct Named {
  const char* reader;
  Change change;
};
constexpr Named CHANGES[] = {
    {"json", changed_json},   {"arrays", changed_arrays},   {"pool", changed_pool},     {"graph", changed_message},
    {"rules", changed_words}, {"targets", changed_words},   {"text", changed_words},    {"sources", changed_sources},
    {"gzip", changed_gzip},   {"line", changed_line},       {"run", changed_run},       {"bundle", changed_bundle},
    {"mixture", changed_json}, {"sentences", changed_sources}, {"binary", changed_model}, {"arpa", changed_arpa},
};

}  // namespace

std::string changed(const std::string& reader, const std::string& input, std::uint32_t seed, Mutate mutate) {
  mutate_bytes = mutate;
  Rng rng(seed + 1);
  for (const auto& [name, change] : CHANGES) {
    if (reader == name) return change(input, rng);
  }
  return "";
}

}  // namespace compgen::fuzz
