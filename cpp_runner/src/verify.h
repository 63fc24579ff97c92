// Does a bundle give here what it gave where it was made? Its golden draws, or answers, made again; see
// compgen/trained/verification.py, which does the same with more runtimes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "decoder.h"
#include "sampler.h"

namespace compgen {

// What came of one way to decode.
struct Verified {
  std::string runtime;
  std::size_t samples = 0, equal = 0;
  std::string first;                // where the first other token is, if there is one
  double largest = 0, allowed = 0;  // difference of log-probabilities among those that are equal; by rounding
  double rate = 0;                  // samples a second, starting left out
  bool passed() const { return equal == samples && largest <= allowed; }
};

// The golden draws of a bundle, or its golden answers.
class Golden {
 public:
  // Throws UserError: the bundle has none, or they are not of this bundle.
  explicit Golden(const Bundle& bundle);

  Verified verify(const std::string& name, Generator& generator, std::int64_t slots, int workers) const;
  Verified verify(const std::string& name, Predictor& predictor, std::int64_t slots, int workers) const;

 private:
  struct Stream {
    std::uint64_t seed = 0;
    std::array<double, 2> temperature{};
    std::vector<Draw> draws;  // in ascending order of address
  };
  Verified compare(const std::string& name, const std::function<std::vector<Draw>()>& again) const;

  const Bundle& bundle_;
  std::vector<Stream> streams_;  // of a generator
  std::vector<Tokens> sources_;  // of a predictor, whose answers are
  std::vector<Draw> expected_;   // the draws of all streams, or answers, whose indices are their places
};

// The rows as a table for people.
std::string table(const std::vector<Verified>& rows);

}  // namespace compgen
