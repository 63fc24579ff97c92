// What writes, given sources or prototypes, whatever its network is; see `Decoder` in compgen/runtime/backend.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend.h"
#include "errors.h"

namespace compgen {

// The state of rows that are being written, one thread's own.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Begins with sources (B, T), each with its end symbol, padded; a generator's decoder with prototypes (B, n), by their
  // places in the pool.
  virtual void open(const std::vector<std::int64_t>& given, std::int64_t rows, std::int64_t width) = 0;
  // Takes a step: sets `token` to the most probable that is allowed, and `log_probs`. Throws UserError: a damaged
  // network gives what is no token or no probability.
  virtual void advance() = 0;
  // Goes on with these rows, in this order; a row may be there more than once.
  virtual void keep(const std::vector<std::int64_t>& rows) = 0;

  std::vector<std::int64_t> token;  // (B) the last written; another may be put there before the next step
  std::vector<double> log_probs;    // (B, V) before any token is forbidden

 protected:
  // Sets `log_probs` to what a network gives. Throws UserError: one is no number.
  template <class Numbers>
  void take(const Numbers& given, const Bundle& bundle) {
    log_probs.assign(given.begin(), given.end());
    if (std::all_of(log_probs.begin(), log_probs.end(), [](double one) { return std::isfinite(one); })) return;
    throw UserError(bundle.folder.string() + ": the network gives a probability that is no number");
  }

  // Sets `token` to the most probable ones that may stand at a position.
  void choose(std::int64_t position) {
    const std::size_t vocabulary = log_probs.size() / token.size();
    for (std::size_t row = 0; row < token.size(); ++row) {
      const double* const numbers = log_probs.data() + row * vocabulary;
      std::int64_t best = -1;
      for (std::int64_t one = 0; one < static_cast<std::int64_t>(vocabulary); ++one) {
        if (!forbidden(one, position) && (best < 0 || numbers[one] > numbers[best])) best = one;
      }
      token[row] = std::max<std::int64_t>(best, 0);
    }
  }
};

// What has decoders: a predictor, or a generator that writes with given prototypes. Threads may each have one.
class Predictor {
 public:
  virtual ~Predictor() = default;
  virtual std::unique_ptr<Decoder> decoder() = 0;
};

// The predictor whose recurrent network a backend runs. The bundle must outlive it.
template <class Real>
std::unique_ptr<Predictor> make_predictor(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend);

// The generator whose network a backend runs, to write with given prototypes. The bundle must outlive it.
template <class Real>
std::unique_ptr<Predictor> make_writer(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend);

// The predictor that a bundle's Transformer is; defined beside `make_backend`, by the library. Throws UserError if its
// graphs cannot be run. The bundle must outlive it.
std::unique_ptr<Predictor> make_transformer(const Bundle& bundle);

// The same by our own code, without a library. Throws UserError: weights that are not those of the bundle's sizes.
std::unique_ptr<Predictor> make_own_transformer(const Bundle& bundle);

}  // namespace compgen
