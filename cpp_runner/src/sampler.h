// What draws samples. A draw is a function of (bundle, seed, address) alone, so the order of work is free: worker
// threads share one counter of addresses, and results are put back in order.
//
// Networks draw by continuous batching: rows that finish are refilled at once, so that every step works on a full
// batch; see compgen/sampling/batching.py.
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
  std::int64_t slots = 0;  // rows of a batch; samples of a grammar that a thread draws before it hands them on
  int workers = 1;
  // A draw whose source is one of these is given up there, and has no target.
  const std::unordered_set<std::string>* unwanted = nullptr;
  const Pool* pool = nullptr;  // what prototypes are chosen from, if not the bundle's pool
};

// Takes a draw; false to stop.
using Take = std::function<bool(Draw&&)>;

// What draws the samples of a bundle: a network or a grammar.
class Generator {
 public:
  virtual ~Generator() = default;
  // Throws UserError for temperatures that it cannot draw at, before anything is drawn.
  virtual void check(const Sampling&) const {}
  // Draws in order of address, each handed to `take`. An error of a worker is thrown here.
  virtual void sample(const Sampling& sampling, const Take& take) = 0;
};

// The generator whose network a backend runs. The bundle must outlive it.
template <class Real>
std::unique_ptr<Generator> make_generator(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend);

}  // namespace compgen
