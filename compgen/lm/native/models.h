// Models that score sentences: KenLM's, of any of its kinds, and recurrent ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sentences.h"

namespace compgen {

// What a model gives the tokens of some sentences; the end of a sentence is a token.
struct Scores {
  std::vector<float> log10;           // of the probability, given the sentence so far
  std::vector<std::uint8_t> matched;  // words of the n-gram that was found; 0 if the token is out of vocabulary
  std::vector<std::uint8_t> known;    // words of the history that the model knows
  std::vector<std::uint32_t> ids;     // of the tokens, for the model that scores
};

// The words that a model knows, without its special symbols, in any order: how many, and a sum of their hashes.
struct Vocabulary {
  std::uint64_t words = 0, sum = 0;

  void add(std::string_view word);
  bool operator!=(const Vocabulary& other) const { return words != other.words || sum != other.sum; }
};

// Threads may ask one model at the same time.
class Model {
 public:
  virtual ~Model() = default;
  virtual void score(const Sentences& sentences, Scores& scores) const = 0;

  // What to warn of when all texts are scored; empty if there is nothing.
  virtual std::string remark() const { return ""; }
};

using Models = std::vector<std::unique_ptr<Model>>;

// A number with a comma before each three digits, as Python writes it for people.
std::string with_commas(std::uint64_t number);

// Opens models; `threads` are those of a recurrent one, which has its own. Throws UserError: there is no such file, it
// cannot be read, or, of models that are `mixed`, it knows other words than the first.
Models open_models(const std::vector<std::string>& paths, std::size_t threads, bool mixed = false);

// Writes the words of a model of KenLM, a line each, to standard output. Throws UserError as `open_models`.
void list_words(const std::string& path);

}  // namespace compgen
