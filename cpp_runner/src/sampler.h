// Continuous batching: rows that finish are refilled at once, so that every step works on a full batch.
//
// A draw is a function of (bundle, seed, address) alone, so the order of work is free: worker threads share one counter
// of addresses, each keeps its own batch full, and results are put back in order; see compgen/runtime/sampler.py.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "backend.h"
#include "bundle.h"

namespace compgen {

// One sample as it was drawn, before any filter.
struct Draw {
  std::int64_t index = 0;
  Tokens tokens;          // source SEP target, without the end symbol
  bool finished = false;  // false when the length limit came first
  bool given_up = false;  // at the end of the source: nothing follows the separator
  double log_prob = 0;    // of all tokens and the end symbol, before temperature
  std::vector<std::int64_t> prototypes;
};

// Tokens as a key of sets.
std::string key_of(const std::int32_t* tokens, std::size_t count);
inline std::string key_of(const Tokens& tokens) { return key_of(tokens.data(), tokens.size()); }

struct Sampling {
  std::uint64_t seed = 0;
  std::int64_t start = 0, stop = 0;  // addresses start .. stop - 1
  std::array<double, 2> temperature{};
  std::int64_t slots = 0;  // rows of a batch
  int workers = 1;
  // A draw whose source is one of these is given up there, and has no target.
  const std::unordered_set<std::string>* unwanted = nullptr;
};

// Draws in order of address, each handed to `take`, which returns false to stop. An error of a worker is thrown here.
template <class Real>
void sample(const Bundle& bundle, Backend<Real>& backend, const Sampling& sampling,
            const std::function<bool(Draw&&)>& take);

}  // namespace compgen
