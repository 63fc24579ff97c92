// Which prototypes direct inference answers by: those with sources like what is asked; see compgen/sampling/direct.py.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "pool.h"

namespace compgen {

// A sequence of ids below `vocabulary` that others are compared with, 64 of its places at a time (Hyyrö 2003, "A
// bit-vector algorithm for computing Levenshtein and Damerau edit distances").
class Pattern {
 public:
  Pattern(const Tokens& tokens, std::int64_t vocabulary);

  std::size_t size() const { return size_; }
  // The Levenshtein distance to ids of the same vocabulary.
  std::int64_t distance(const Tokens& other) const;

 private:
  std::int64_t long_distance(const Tokens& other) const;

  std::size_t size_, words_;
  std::vector<std::uint64_t> places_;  // (vocabulary, words): a bit for each place that holds the id
};

// One less the distance's share of the longer of two lengths, as RapidFuzz has it: rounded twice.
float similarity(std::int64_t distance, std::size_t one, std::size_t other);

// The sources of a pool of one prototype or two. The pool must outlive it.
class Retrieval {
 public:
  Retrieval(const Pool& pool, std::int64_t vocabulary);

  // Tuples of n places in the pool, one after another, for a source: EACH first prototypes at most, the nearest first, and
  // for each of these as many second ones. What seconds were found for is kept in `known`, each thread's own.
  using Known = std::unordered_map<std::string, std::vector<std::int64_t>>;
  std::vector<std::int64_t> choices(const Tokens& source, Known& known) const;

  static constexpr std::size_t EACH = 5;

 private:
  std::vector<std::int64_t> firsts(const Tokens& source) const;
  const std::vector<std::int64_t>& seconds(const Tokens& lacking, Known& known) const;
  bool holds(std::int64_t row, std::int32_t token) const;

  const Pool& pool_;
  std::int64_t vocabulary_;
  std::vector<Tokens> sources_;
};

}  // namespace compgen
