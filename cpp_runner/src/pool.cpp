#include "pool.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "errors.h"
#include "random.h"

namespace compgen {
namespace {

constexpr double LARGEST = 0x1p53;  // tuples that 53 random bits can tell apart

struct Array {
  std::vector<std::int64_t> shape, values;
};

template <class T>
std::vector<std::int64_t> as_integers(const char* data, std::size_t count) {
  std::vector<std::int64_t> values(count);
  for (std::size_t k = 0; k < count; ++k) {
    T value;
    std::memcpy(&value, data + k * sizeof(T), sizeof(T));  // nothing says that the file is aligned
    values[k] = static_cast<std::int64_t>(value);
  }
  return values;
}

// One tensor of a safetensors file: eight bytes of length, a JSON header of that length, data.
Array tensor(const std::string& file, const nlohmann::json& header, std::size_t data, const char* name,
             std::size_t rank) {
  const auto& entry = header.at(name);
  Array array{entry.at("shape").get<std::vector<std::int64_t>>(), {}};
  const auto offsets = entry.at("data_offsets").get<std::vector<std::size_t>>();
  const auto dtype = entry.at("dtype").get<std::string>();
  const std::size_t size = dtype == "U8" ? 1 : dtype == "U16" ? 2 : dtype == "I32" ? 4 : dtype == "I64" ? 8 : 0;
  if (array.shape.size() != rank || !size) {
    throw UserError(std::string(name) + " is " + dtype + " of rank " + std::to_string(array.shape.size()) +
                    ", expected integers of rank " + std::to_string(rank));
  }
  std::size_t count = 1;
  for (const std::int64_t length : array.shape) {
    if (length < 0 || (length > 0 && count > file.size() / static_cast<std::size_t>(length))) {
      throw UserError(std::string(name) + " is larger than the file");
    }
    count *= static_cast<std::size_t>(length);
  }
  const std::size_t room = file.size() - data;
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > room || offsets[1] - offsets[0] != count * size) {
    throw UserError(std::string(name) + " does not fit the file");
  }
  const char* begin = file.data() + data + offsets[0];
  array.values = size == 1   ? as_integers<std::uint8_t>(begin, count)
                 : size == 2 ? as_integers<std::uint16_t>(begin, count)
                 : size == 4 ? as_integers<std::int32_t>(begin, count)
                             : as_integers<std::int64_t>(begin, count);
  return array;
}

bool outside(const std::vector<std::int64_t>& ids, std::int64_t size) {
  return std::any_of(ids.begin(), ids.end(), [size](std::int64_t id) { return id < 0 || id >= size; });
}

}  // namespace

Pool::Pool(const std::string& file, std::int64_t prototypes, std::int64_t vocabulary) : prototypes_(prototypes) {
  std::uint64_t length = 0;
  if (file.size() < 8) throw UserError("not a safetensors file");
  std::memcpy(&length, file.data(), 8);
  if (length > file.size() - 8) throw UserError("not a safetensors file");
  const std::size_t data = 8 + static_cast<std::size_t>(length);
  Array tokens, members, starts, counts;
  try {
    const auto header = nlohmann::json::parse(file.begin() + 8, file.begin() + static_cast<std::ptrdiff_t>(data));
    tokens = tensor(file, header, data, "tokens", 2);
    members = tensor(file, header, data, "members", 1);
    starts = tensor(file, header, data, "starts", 2);
    counts = tensor(file, header, data, "counts", 2);
  } catch (const nlohmann::json::exception& error) {
    throw UserError(std::string("not a prototype pool: ") + error.what());
  }
  if (starts.shape != counts.shape || starts.shape[1] != prototypes) {
    throw UserError("starts and counts are not those of " + std::to_string(prototypes) + " prototypes");
  }
  if (outside(tokens.values, vocabulary)) {
    throw UserError("token ids outside the vocabulary of " + std::to_string(vocabulary));
  }
  const std::int64_t size = tokens.shape[0], width = tokens.shape[1];
  if (outside(members.values, size)) throw UserError("members outside the " + std::to_string(size) + " sequences");
  for (std::int64_t row = 0; row < size; ++row) {
    const auto begin = tokens.values.begin() + row * width;
    sequences_.emplace_back(begin, std::find(begin, begin + width, PAD));
  }
  members_ = std::move(members.values), starts_ = std::move(starts.values), counts_ = std::move(counts.values);
  if (prototypes == 0) return;
  const auto available = static_cast<std::int64_t>(members_.size());
  double tuples = 0;
  for (std::size_t at = 0; at < starts_.size();) {
    double product = 1;
    for (std::int64_t slot = 0; slot < prototypes; ++slot, ++at) {
      if (starts_[at] < 0 || counts_[at] < 1 || counts_[at] > available || starts_[at] > available - counts_[at]) {
        throw UserError("groups outside the " + std::to_string(available) + " members");
      }
      product *= static_cast<double>(counts_[at]);
    }
    tuples += product;
    if (tuples > LARGEST) throw UserError("more than 2^53 tuples of prototypes");
    ends_.push_back(static_cast<std::int64_t>(tuples));  // whole numbers below 2^53 are exact
  }
  if (ends_.empty()) throw UserError("no prototypes go together");
  for (const std::int64_t member : members_) {
    const auto& sequence = sequences_[static_cast<std::size_t>(member)];
    if (sequence.empty()) throw UserError("a prototype without tokens");
    longest_ = std::max(longest_, static_cast<std::int64_t>(sequence.size()));
  }
}

void Pool::choose(std::uint64_t seed, std::int64_t sample, std::int64_t* chosen) const {
  if (prototypes_ == 0) return;
  std::int64_t rank = rank_of(seed, sample, total());
  const auto block = std::upper_bound(ends_.begin(), ends_.end(), rank) - ends_.begin();
  if (block > 0) rank -= ends_[static_cast<std::size_t>(block) - 1];
  for (std::int64_t slot = prototypes_ - 1; slot >= 0; --slot) {
    const auto at = static_cast<std::size_t>(block * prototypes_ + slot);
    chosen[slot] = members_[static_cast<std::size_t>(starts_[at] + rank % counts_[at])];
    rank /= counts_[at];
  }
}

}  // namespace compgen
