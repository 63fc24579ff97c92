// Pools for tests, as the bytes of a safetensors file.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

struct File {
  nlohmann::json header = nlohmann::json::object();
  std::string data;

  template <class T>
  File& add(const char* name, const char* dtype, const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
    const auto begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
    return *this;
  }

  std::string bytes() const {
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + text + data;
  }
};

// Four training examples of tokens 5 to 9, which may be prototypes in two blocks: {0, 1} x {2} and {3} x {0, 1, 2}.
inline File small_pool() {
  return File()
      .add<std::uint8_t>("tokens", "U8", {4, 6}, {5, 3, 7, 2, 0, 0, 6, 3, 8, 2, 0, 0,  //
                                                  5, 6, 3, 7, 8, 2, 6, 6, 3, 8, 2, 0})
      .add<std::int32_t>("members", "I32", {5}, {0, 1, 2, 3, 0})
      .add<std::int64_t>("starts", "I64", {2, 2}, {0, 2, 3, 0})
      .add<std::int64_t>("counts", "I64", {2, 2}, {2, 1, 1, 3});
}
