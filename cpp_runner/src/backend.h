// What can run a generator's network: one class a library, and one for our own decoding step. Arrays in, arrays out;
// see `Backend` in compgen/runtime/backend.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aligned.h"
#include "bundle.h"

namespace compgen {

// Rows of an array (B, ...) whose rows have so many numbers.
template <class Numbers>
Numbers gathered(const Numbers& array, std::size_t each, const std::vector<std::int64_t>& rows) {
  Numbers found;
  found.reserve(rows.size() * each);
  for (const auto row : rows) {
    const auto* const from = array.data() + static_cast<std::size_t>(row) * each;
    found.insert(found.end(), from, from + each);
  }
  return found;
}

// What a row attends to, a prototype or a predictor's source: its tokens (T), keys and values (T, A), without padding.
// They lie where they were encoded, and must stay there as long as the batch is used.
template <class Real>
struct Memory {
  const Real *keys = nullptr, *values = nullptr;
  const std::int32_t* tokens = nullptr;
  std::int64_t length = 0;
};

// The same of all rows in arrays with padding, as graphs take them.
template <class Real>
struct Padded {
  Aligned<Real> keys, values;        // (B, n, T, A)
  std::vector<std::int64_t> tokens;  // (B, n, T)
  std::vector<const Real*> laid;     // (B, n) the keys that were copied to each place
};

// The decoder's state for a batch: rows of the arrays, of which the first `rows` are in use; n memories of up to T
// tokens.
template <class Real>
struct Batch {
  std::int64_t rows = 0, width = 0;                 // B, T
  std::vector<std::int64_t> token, position, half;  // (B)
  Aligned<Real> hidden, cell, fed, uniform;         // (B, H), (B, H), (B, F), (B)
  std::vector<Memory<Real>> memories;               // (B, n)
  Padded<Real> padded;                              // for graphs, by `pad`
  std::vector<Real> temperature;                    // (2)
  std::vector<std::int64_t> next_token, next_half;  // (B)
  Aligned<Real> next_hidden, next_cell, next_fed, log_probs;  // log_probs (B, V)

  Batch() = default;
  // Room for `size` rows, all zero.
  Batch(const Bundle& bundle, std::int64_t size, std::int64_t memory_width) : width(memory_width) {
    const auto make = [size](auto& array, std::int64_t each) {
      array.assign(static_cast<std::size_t>(size * each), {});
    };
    make(token, 1), make(position, 1), make(half, 1), make(uniform, 1);
    make(hidden, bundle.hidden), make(cell, bundle.hidden), make(fed, bundle.output);
    make(memories, bundle.prototypes);
    make(next_token, 1), make(next_half, 1), make(log_probs, static_cast<std::int64_t>(bundle.vocabulary.size()));
    make(next_hidden, bundle.hidden), make(next_cell, bundle.hidden), make(next_fed, bundle.output);
    temperature.assign(2, Real{0});
  }

  // The first row, twice.
  Batch twice() const {
    Batch two;
    two.rows = 2, two.width = width, two.temperature = temperature;
    const auto gather = [size = token.size()](const auto& from, auto& to) {
      to = gathered(from, from.size() / size, {0, 0});
    };
    gather(token, two.token), gather(position, two.position), gather(half, two.half), gather(uniform, two.uniform);
    gather(hidden, two.hidden), gather(cell, two.cell), gather(fed, two.fed);
    gather(memories, two.memories);
    gather(next_token, two.next_token), gather(next_half, two.next_half), gather(log_probs, two.log_probs);
    gather(next_hidden, two.next_hidden), gather(next_cell, two.next_cell), gather(next_fed, two.next_fed);
    return two;
  }

  // What the step gave to the first row of another batch becomes that of ours.
  void take_first(const Batch& other) {
    const auto copy = [size = other.token.size()](const auto& from, auto& to) {
      std::copy_n(from.begin(), from.size() / size, to.begin());
    };
    copy(other.next_token, next_token), copy(other.next_half, next_half), copy(other.log_probs, log_probs);
    copy(other.next_hidden, next_hidden), copy(other.next_cell, next_cell), copy(other.next_fed, next_fed);
  }

  // Copies memories to where graphs read them, if they are not there already. A token's key has `attention` numbers.
  // What keys and values have behind a memory's end is never looked at, and stays.
  void pad(std::int64_t attention) {
    const std::size_t places = memories.size(), tokens = static_cast<std::size_t>(width);
    const std::size_t size = tokens * static_cast<std::size_t>(attention);
    if (padded.laid.size() < places) {
      padded.keys.resize(places * size), padded.values.resize(places * size);
      padded.tokens.resize(places * tokens), padded.laid.resize(places);
    }
    for (std::size_t place = 0; place < places; ++place) {
      const Memory<Real>& memory = memories[place];
      if (padded.laid[place] == memory.keys) continue;
      const std::int64_t used = memory.length * attention;
      std::copy_n(memory.keys, used, padded.keys.data() + place * size);
      std::copy_n(memory.values, used, padded.values.data() + place * size);
      std::int64_t* const first = padded.tokens.data() + place * tokens;
      std::fill(std::copy_n(memory.tokens, memory.length, first), first + tokens, PAD);
      padded.laid[place] = memory.keys;
    }
  }

  // What the step gave is the state of the next.
  void advance() {
    std::swap(token, next_token);
    std::swap(half, next_half);
    std::swap(hidden, next_hidden);
    std::swap(cell, next_cell);
    std::swap(fed, next_fed);
  }

  // Goes on with these rows, in this order; a row may be there more than once. All rows must be in use.
  void keep(const std::vector<std::int64_t>& kept) {
    const auto count = static_cast<std::size_t>(rows);
    const auto gather = [&](auto&... arrays) {
      ((arrays = gathered(arrays, arrays.size() / count, kept)), ...);
    };
    gather(token, position, half, hidden, cell, fed, uniform, memories);
    const auto resize = [&](auto&... arrays) { (arrays.resize(arrays.size() / count * kept.size()), ...); };
    resize(next_token, next_half, next_hidden, next_cell, next_fed, log_probs);
    rows = static_cast<std::int64_t>(kept.size());
  }
};

template <class Real>
struct Encoded {
  Aligned<Real> keys, values, final;  // (P, n, T, A), (P, n, T, A), (P, n, D)
};

// Threads may call one backend at the same time.
template <class Real>
class Backend {
 public:
  virtual ~Backend() = default;
  // Encodes P sequences (P, T) in each of their n roles.
  virtual Encoded<Real> encode(const std::vector<std::int64_t>& tokens, std::int64_t count, std::int64_t width) = 0;
  // The first hidden and cell (B, H) of rows whose prototypes have these last states (B, n, D).
  virtual void start(const Aligned<Real>& final, std::int64_t rows, Aligned<Real>& hidden, Aligned<Real>& cell) = 0;
  // Fills what begins with `next_`, and log_probs.
  virtual void step(Batch<Real>& batch) = 0;
};

// A program has one library: it is linked with onnx_backend.cpp or with torch_backend.cpp, which define this. Without
// `decodes`, `step` is not to be called. Throws UserError if the bundle's graphs cannot be run. The bundle must outlive
// the backend.
template <class Real>
std::unique_ptr<Backend<Real>> make_backend(const Bundle& bundle, bool decodes);

// The backend that decodes by our own `Step`, and encodes by the library.
template <class Real>
std::unique_ptr<Backend<Real>> make_own_backend(const Bundle& bundle);

}  // namespace compgen
