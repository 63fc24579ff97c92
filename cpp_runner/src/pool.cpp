#include "pool.h"

#include <algorithm>

#include "errors.h"
#include "random.h"
#include "safetensors.h"

namespace compgen {
namespace {

constexpr double LARGEST = 0x1p53;  // tuples that 53 random bits can tell apart

bool outside(const std::vector<std::int64_t>& ids, std::int64_t size) {
  return std::any_of(ids.begin(), ids.end(), [size](std::int64_t id) { return id < 0 || id >= size; });
}

// The shape of a table, as Python shows it.
std::string shown(const std::vector<std::int64_t>& shape) {
  return "(" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + ")";
}

}  // namespace

Pool::Pool(const std::string& file, std::int64_t prototypes, std::int64_t vocabulary) : prototypes_(prototypes) {
  const Safetensors arrays(file);
  arrays.require_only({"tokens", "members", "starts", "counts"});
  const auto tokens = arrays.integers("tokens", 2, {"U8", "U16", "I32"});
  auto members = arrays.integers("members", 1, {"I32"}), starts = arrays.integers("starts", 2, {"I64"});
  auto counts = arrays.integers("counts", 2, {"I64"});
  if (starts.shape != counts.shape || starts.shape[1] != prototypes) {
    throw UserError("starts " + shown(starts.shape) + " and counts " + shown(counts.shape) + ", expected " +
                    std::to_string(prototypes) + " prototypes in both");
  }
  if (outside(tokens.values, vocabulary)) {
    throw UserError("token ids outside the vocabulary of " + std::to_string(vocabulary));
  }
  const std::int64_t size = tokens.shape[0], width = tokens.shape[1];
  if (outside(members.values, size)) throw UserError("members outside the " + std::to_string(size) + " sequences");
  targets_ = size == 0, width_ = width;
  for (std::int64_t row = 0; row < size; ++row) {
    const auto begin = tokens.values.begin() + row * width;
    const auto end = std::find(begin, begin + width, PAD);
    sequences_.emplace_back(begin, end);
    longest_of_all_ = std::max<std::int64_t>(longest_of_all_, end - begin);
    const auto middle = std::find(begin, end, SEP);
    targets_ = targets_ || std::any_of(middle, end, [](std::int64_t token) { return token != SEP && token != EOS; });
    if (std::find(begin, begin + width, EOS) == begin + width) throw UserError("a sequence without its end symbol");
    if (std::any_of(end, begin + width, [](std::int64_t token) { return token != PAD; })) {
      throw UserError("a sequence that goes on after its padding");
    }
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
    if (tuples > LARGEST) throw UserError("more than 2^53 tuples of " + std::to_string(prototypes) + " prototypes");
    ends_.push_back(static_cast<std::int64_t>(tuples));  // whole numbers below 2^53 are exact
  }
  if (ends_.empty()) throw UserError("no prototypes go together");
  for (const std::int64_t member : members_) {
    const auto length = static_cast<std::int64_t>(sequences_[static_cast<std::size_t>(member)].size());
    longest_ = std::max(longest_, length);
  }
}

Pool Pool::holding(const std::vector<bool>& wanted) const {
  struct Group {
    std::int64_t start, count;
  };
  enum Kind { OTHER, WANTED, ANY };
  Pool found;
  found.prototypes_ = prototypes_;
  std::vector<std::int64_t> before{0}, others;  // wanted members before each place
  for (const std::int64_t member : members_) {
    const bool is_wanted = wanted[static_cast<std::size_t>(member)];
    before.push_back(before.back() + is_wanted);
    (is_wanted ? found.members_ : others).push_back(member);
  }
  found.members_.insert(found.members_.end(), others.begin(), others.end());
  found.members_.insert(found.members_.end(), members_.begin(), members_.end());
  const auto group = [&](Kind kind, std::size_t at) -> Group {
    const auto start = static_cast<std::size_t>(starts_[at]), end = start + static_cast<std::size_t>(counts_[at]);
    const std::int64_t first = before[start], count = before[end] - first;
    if (kind == WANTED) return {first, count};
    if (kind == OTHER) return {before.back() + starts_[at] - first, counts_[at] - count};
    return {static_cast<std::int64_t>(members_.size()) + starts_[at], counts_[at]};
  };
  // A block splits by the first slot with a wanted member: (other, ..., other, wanted, any, ..., any).
  const auto n = static_cast<std::size_t>(prototypes_);
  for (std::size_t split = 0; split < n; ++split) {
    for (std::size_t block = 0; block < starts_.size(); block += n) {
      std::vector<Group> groups;
      std::int64_t tuples = 1;
      for (std::size_t slot = 0; slot < n; ++slot) {
        groups.push_back(group(slot < split ? OTHER : slot == split ? WANTED : ANY, block + slot));
        tuples *= groups.back().count;
      }
      if (tuples == 0) continue;
      for (const Group& one : groups) found.starts_.push_back(one.start), found.counts_.push_back(one.count);
      found.ends_.push_back(found.total() + tuples);
    }
  }
  return found;
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
