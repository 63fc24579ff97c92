#include "safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "errors.h"

namespace compgen {
namespace {

const std::map<std::string, std::size_t> SIZES = {{"U8", 1},  {"I8", 1},  {"U16", 2}, {"I32", 4},
                                                  {"I64", 8}, {"F32", 4}, {"F64", 8}};

// Nothing says that the data are aligned.
template <class T, class To>
void convert(const char* data, std::size_t count, std::vector<To>& values) {
  values.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    T value;
    std::memcpy(&value, data + k * sizeof(T), sizeof(T));
    values[k] = static_cast<To>(value);
  }
}

}  // namespace

Safetensors::Safetensors(const std::string& file) : file_(file) {
  std::uint64_t length = 0;
  if (file.size() < 8) throw UserError("not a safetensors file");
  std::memcpy(&length, file.data(), 8);
  if (length > file.size() - 8) throw UserError("not a safetensors file");
  const std::size_t data = 8 + static_cast<std::size_t>(length), room = file.size() - data;
  try {
    const auto header = nlohmann::json::parse(file.begin() + 8, file.begin() + static_cast<std::ptrdiff_t>(data));
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") continue;
      Entry entry{value.at("dtype").get<std::string>(), value.at("shape").get<std::vector<std::int64_t>>(), 0, 1, 0};
      const auto size = SIZES.find(entry.dtype);
      if (size == SIZES.end()) throw UserError(name + " is " + entry.dtype + ", which is not expected here");
      entry.size = size->second;
      for (const std::int64_t length_of : entry.shape) {
        if (length_of < 0 || (length_of > 0 && entry.count > file.size() / static_cast<std::size_t>(length_of))) {
          throw UserError(name + " is larger than the file");
        }
        entry.count *= static_cast<std::size_t>(length_of);
      }
      const auto offsets = value.at("data_offsets").get<std::vector<std::size_t>>();
      if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > room ||
          offsets[1] - offsets[0] != entry.count * entry.size) {
        throw UserError(name + " does not fit the file");
      }
      entry.begin = data + offsets[0];
      entries_.emplace(name, std::move(entry));
    }
  } catch (const nlohmann::json::exception& error) {
    throw UserError(std::string("not a safetensors file: ") + error.what());
  }
}

const Safetensors::Entry& Safetensors::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw UserError("has no array " + name);
  return found->second;
}

Array<std::int64_t> Safetensors::integers(const std::string& name, std::size_t rank) const {
  const Entry& found = entry(name);
  if (found.shape.size() != rank || found.dtype[0] == 'F' || found.dtype == "I8") {
    throw UserError(name + " is " + found.dtype + " of rank " + std::to_string(found.shape.size()) +
                    ", expected integers of rank " + std::to_string(rank));
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
std::vector<T> Safetensors::exactly(const std::string& name, const char* dtype,
                                    const std::vector<std::int64_t>& shape) const {
  const Entry& found = entry(name);
  if (found.shape != shape || found.dtype != dtype) {
    std::string sizes;
    for (const auto size : shape) sizes += (sizes.empty() ? "" : " x ") + std::to_string(size);
    throw UserError(name + ": expected " + dtype + " of " + sizes);
  }
  std::vector<T> values;
  convert<T>(file_.data() + found.begin, found.count, values);
  return values;
}

std::vector<std::int8_t> Safetensors::bytes(const std::string& name, const std::vector<std::int64_t>& shape) const {
  return exactly<std::int8_t>(name, "I8", shape);
}

template <class Real>
std::vector<Real> Safetensors::reals(const std::string& name, const std::vector<std::int64_t>& shape) const {
  auto values = exactly<Real>(name, sizeof(Real) == 4 ? "F32" : "F64", shape);
  const auto infinite = [](Real value) { return !std::isfinite(value); };
  if (std::any_of(values.begin(), values.end(), infinite)) throw UserError(name + " has numbers that are not finite");
  return values;
}

template std::vector<float> Safetensors::reals(const std::string&, const std::vector<std::int64_t>&) const;
template std::vector<double> Safetensors::reals(const std::string&, const std::vector<std::int64_t>&) const;

}  // namespace compgen
