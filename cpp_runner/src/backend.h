// What can run a generator's network: one class a library. Arrays in, arrays out; see `Backend` in
// compgen/runtime/sampler.py.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bundle.h"

namespace compgen {

// The decoder's state for a batch: rows of the arrays, of which the first `rows` are in use. n prototypes of T tokens.
template <class Real>
struct Batch {
  std::int64_t rows = 0;
  std::vector<std::int64_t> token, position, half;  // (B)
  std::vector<Real> hidden, cell, fed, uniform;     // (B, H), (B, H), (B, F), (B)
  std::vector<Real> keys, values;                   // (B, n, T, A)
  std::vector<std::int64_t> memory_tokens;          // (B, n, T)
  std::vector<Real> temperature;                    // (2)
  std::vector<std::int64_t> next_token, next_half;  // (B)
  std::vector<Real> next_hidden, next_cell, next_fed, log_probs;  // log_probs (B, V)
};

template <class Real>
struct Encoded {
  std::vector<Real> keys, values, final;  // (P, n, T, A), (P, n, T, A), (P, n, D)
};

// Threads may call one backend at the same time.
template <class Real>
class Backend {
 public:
  virtual ~Backend() = default;
  // Encodes P sequences (P, T) in each of their n roles.
  virtual Encoded<Real> encode(const std::vector<std::int64_t>& tokens, std::int64_t count, std::int64_t width) = 0;
  // The first hidden and cell (B, H) of rows whose prototypes have these last states (B, n, D).
  virtual void start(const std::vector<Real>& final, std::int64_t rows, std::vector<Real>& hidden,
                     std::vector<Real>& cell) = 0;
  // Fills what begins with `next_`, and log_probs.
  virtual void step(Batch<Real>& batch) = 0;
};

// A program has one backend: it is linked with onnx_backend.cpp or with torch_backend.cpp, which define this. Throws
// UserError if the bundle's graphs cannot be run. The bundle must outlive the backend.
template <class Real>
std::unique_ptr<Backend<Real>> make_backend(const Bundle& bundle);

}  // namespace compgen
