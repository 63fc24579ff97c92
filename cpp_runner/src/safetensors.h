// Arrays in a safetensors file: eight bytes of length, a JSON header of that length, data. What the safetensors library
// refuses is refused here: data that overlap, leave gaps or do not reach the end.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "aligned.h"

namespace compgen {

template <class T>
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<T> values;
};

class Safetensors {
 public:
  // `file` is the content, which must outlive this. Throws UserError if it is no safetensors file.
  explicit Safetensors(const std::string& file);

  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  // Throws UserError if there is no such array.
  const std::vector<std::int64_t>& shape(const std::string& name) const { return entry(name).shape; }
  // Throws UserError if there are arrays of other names.
  void require_only(const std::set<std::string>& names) const;
  // Integers of one of the types U8, U16, I32 and I64, of which messages name the first. Throws UserError: there is no such array of this rank.
  Array<std::int64_t> integers(const std::string& name, std::size_t rank, const std::set<std::string>& types) const;
  // Signed bytes. Throws UserError: there is no such array of this shape.
  Aligned<std::int8_t> bytes(const std::string& name, const std::vector<std::int64_t>& shape) const;
  // Numbers of the precision of Real. Throws UserError: there is no such array of this shape, or a number is not finite.
  template <class Real>
  Aligned<Real> reals(const std::string& name, const std::vector<std::int64_t>& shape) const;

 private:
  struct Entry {
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::size_t begin, count, size;  // of the data: its first byte in the file, numbers, bytes of each
  };
  const Entry& entry(const std::string& name) const;
  template <class T>
  Aligned<T> exactly(const std::string& name, const char* dtype, const std::vector<std::int64_t>& shape) const;

  const std::string& file_;
  std::map<std::string, Entry> entries_;
};

}  // namespace compgen
