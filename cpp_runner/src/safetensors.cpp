#include "safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "errors.h"
#include "strict_json.h"

namespace compgen {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t LARGEST_HEADER = 100'000'000;

struct Type {
  std::size_t size;  // bytes
  const char* name;  // in numpy
};
const std::map<std::string, Type> TYPES = {
    {"BOOL", {1, "bool"}},   {"U8", {1, "uint8"}},  {"I8", {1, "int8"}},    {"U16", {2, "uint16"}},
    {"I16", {2, "int16"}},   {"F16", {2, "float16"}}, {"U32", {4, "uint32"}}, {"I32", {4, "int32"}},
    {"F32", {4, "float32"}}, {"U64", {8, "uint64"}}, {"I64", {8, "int64"}},  {"F64", {8, "float64"}}};

std::string text(const Json& entry, const char* name) {
  if (!entry.is_object() || !entry.contains(name) || !entry.at(name).is_string()) {
    throw UserError(std::string("not a safetensors file: an array without ") + name);
  }
  return entry.at(name).get<std::string>();
}

std::vector<std::uint64_t> sizes(const Json& entry, const char* name) {
  const auto is_size = [](const Json& value) { return value.is_number_unsigned(); };
  if (!entry.contains(name) || !entry.at(name).is_array() ||
      !std::all_of(entry.at(name).begin(), entry.at(name).end(), is_size)) {
    throw UserError(std::string("not a safetensors file: an array without ") + name);
  }
  return entry.at(name).get<std::vector<std::uint64_t>>();
}

void require_texts(const Json& metadata) {
  const auto is_text = [](const Json& value) { return value.is_string(); };
  if (!metadata.is_null() && !(metadata.is_object() && std::all_of(metadata.begin(), metadata.end(), is_text))) {
    throw UserError("not a safetensors file: metadata that are no text");
  }
}

// Nothing says that the data are aligned.
template <class T, class Numbers>
void convert(const char* data, std::size_t count, Numbers& values) {
  values.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    T value;
    std::memcpy(&value, data + k * sizeof(T), sizeof(T));
    values[k] = static_cast<typename Numbers::value_type>(value);
  }
}

}  // namespace

Safetensors::Safetensors(const std::string& file) : file_(file) {
  std::uint64_t length = 0;
  if (file.size() < 8) throw UserError("not a safetensors file");
  std::memcpy(&length, file.data(), 8);
  if (length > file.size() - 8 || length > LARGEST_HEADER || length == 0 || file[8] != '{') {
    throw UserError("not a safetensors file");
  }
  const std::size_t data = 8 + static_cast<std::size_t>(length), room = file.size() - data;
  const auto header = strict_json(file.substr(8, static_cast<std::size_t>(length)));
  std::vector<std::pair<std::size_t, std::size_t>> taken;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      require_texts(value);
      continue;
    }
    Entry entry{text(value, "dtype"), {}, 0, 1, 0};
    const auto type = TYPES.find(entry.dtype);
    if (type == TYPES.end()) throw UserError(name + " is " + entry.dtype + ", which is not expected here");
    entry.size = type->second.size;
    for (const std::uint64_t extent : sizes(value, "shape")) {
      if (extent > 0 && entry.count > file.size() / extent) throw UserError(name + " is larger than the file");
      entry.count *= static_cast<std::size_t>(extent);
      entry.shape.push_back(static_cast<std::int64_t>(extent));
    }
    const auto offsets = sizes(value, "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > room ||
        offsets[1] - offsets[0] != entry.count * entry.size) {
      throw UserError(name + " does not fit the file");
    }
    taken.emplace_back(offsets[0], offsets[1]);
    entry.begin = data + static_cast<std::size_t>(offsets[0]);
    entries_.emplace(name, std::move(entry));
  }
  std::sort(taken.begin(), taken.end());
  std::size_t end = 0;
  for (const auto& [from, to] : taken) {
    if (from != end) throw UserError("arrays overlap or leave gaps");
    end = to;
  }
  if (end != room) throw UserError("arrays do not fill the file");
}

void Safetensors::require_only(const std::set<std::string>& names) const {
  for (const auto& [name, entry] : entries_) {
    if (names.count(name) == 0) throw UserError("has an array " + name + ", which is not expected here");
  }
}

const Safetensors::Entry& Safetensors::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw UserError("has no array " + name);
  return found->second;
}

Array<std::int64_t> Safetensors::integers(const std::string& name, std::size_t rank,
                                          const std::set<std::string>& types) const {
  const Entry& found = entry(name);
  if (found.shape.size() != rank || types.count(found.dtype) == 0) {
    throw UserError(name + " is " + TYPES.at(found.dtype).name + " of rank " + std::to_string(found.shape.size()) +
                    ", expected " + TYPES.at(*types.begin()).name + " of rank " + std::to_string(rank));
  }
  Array<std::int64_t> array{found.shape, {}};
  const char* data = file_.data() + found.begin;
  if (found.dtype == "U8") convert<std::uint8_t>(data, found.count, array.values);
  if (found.dtype == "U16") convert<std::uint16_t>(data, found.count, array.values);
  if (found.dtype == "I32") convert<std::int32_t>(data, found.count, array.values);
  if (found.dtype == "I64") convert<std::int64_t>(data, found.count, array.values);
  return array;
}

template <class T>
Aligned<T> Safetensors::exactly(const std::string& name, const char* dtype,
                                const std::vector<std::int64_t>& shape) const {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.shape != shape || found->second.dtype != dtype) {
    std::string sizes;
    for (const auto size : shape) sizes += (sizes.empty() ? "" : " x ") + std::to_string(size);
    throw UserError(name + ": expected " + TYPES.at(dtype).name + " of " + sizes);
  }
  Aligned<T> values;
  convert<T>(file_.data() + found->second.begin, found->second.count, values);
  return values;
}

Aligned<std::int8_t> Safetensors::bytes(const std::string& name, const std::vector<std::int64_t>& shape) const {
  return exactly<std::int8_t>(name, "I8", shape);
}

template <class Real>
Aligned<Real> Safetensors::reals(const std::string& name, const std::vector<std::int64_t>& shape) const {
  auto values = exactly<Real>(name, sizeof(Real) == 4 ? "F32" : "F64", shape);
  const auto infinite = [](Real value) { return !std::isfinite(value); };
  if (std::any_of(values.begin(), values.end(), infinite)) throw UserError(name + " has numbers that are not finite");
  return values;
}

template Aligned<float> Safetensors::reals(const std::string&, const std::vector<std::int64_t>&) const;
template Aligned<double> Safetensors::reals(const std::string&, const std::vector<std::int64_t>&) const;

}  // namespace compgen
