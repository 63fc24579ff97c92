// The prototype pool of a generator and its compatible set Omega; see compgen/runtime/pool.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace compgen {

// Special symbols have the first ids of every vocabulary (compgen/data/vocabulary.py).
enum : std::int32_t { PAD = 0, BOS = 1, EOS = 2, SEP = 3, UNK = 4, SPECIALS = 5 };

using Tokens = std::vector<std::int32_t>;

// Whether a token may not be written at a position of an output (compgen/data/vocabulary.py).
inline bool forbidden(std::int64_t token, std::int64_t position) {
  return token == PAD || token == BOS || token == UNK || (position == 0 && (token == EOS || token == SEP));
}

class Pool {
 public:
  Pool() = default;

  // What a safetensors file holds: `tokens` (P, T), `members` (M), `starts` and `counts` (K, n). Throws UserError if it
  // is no pool of `prototypes`, or would make sampling read outside an array.
  Pool(const std::string& file, std::int64_t prototypes, std::int64_t vocabulary);

  std::int64_t prototypes() const { return prototypes_; }
  // Omega's number of tuples.
  std::int64_t total() const { return ends_.empty() ? 0 : ends_.back(); }
  // The tokens of the longest sequence that can serve as a prototype, the end symbol included; 1 if none can.
  std::int64_t longest() const { return longest_; }
  // The same of all sequences, whether they can or not.
  std::int64_t longest_of_all() const { return longest_of_all_; }
  // The tokens of a row in the file, padding included.
  std::int64_t width() const { return width_; }
  // All sequences `source SEP target EOS`, without padding.
  const std::vector<Tokens>& sequences() const { return sequences_; }

  // The tuples of Omega that have a member among those `wanted`, to choose from: without sequences. There may be none.
  Pool holding(const std::vector<bool>& wanted) const;

  // Whether some sequence has something after its separator, or there is none at all; else these are sentences.
  bool targets() const { return targets_; }

  // Writes the indices of the n prototypes of a sample address.
  void choose(std::uint64_t seed, std::int64_t sample, std::int64_t* chosen) const;

 private:
  std::int64_t prototypes_ = 0, longest_ = 1, longest_of_all_ = 1, width_ = 0;
  bool targets_ = false;
  std::vector<Tokens> sequences_;
  std::vector<std::int64_t> members_, starts_, counts_, ends_;  // ends: cumulative number of tuples by block
};

}  // namespace compgen
