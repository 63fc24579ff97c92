// What texts are worth to a mixture: perplexities, and the scores of sentences and tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mixture.h"
#include "models.h"
#include "sentences.h"

namespace compgen {

// Some lines of a text, and what the models give their tokens.
struct Block {
  std::string lines;
  Sentences sentences;
  std::vector<Scores> models;
  std::vector<double> losses;  // of tokens, if there is a mixture
  std::string rows;            // of sentences, if they are asked for
};

// How a text is scored.
struct Scoring {
  const Models& models;
  const Mixture* mixture = nullptr;  // whose models they are, if losses are wanted
  bool blank = false;                // whether a blank line is a sentence without words
  std::size_t threads = 1;
  bool packed = true;  // whether the text may be compressed
};

// Scores a text block by block; `finish` works on a block in the thread that scored it, `take` has the blocks in order.
// Throws what either does, and what is wrong with the text.
void score(const std::string& text, const Scoring& scoring, const std::function<void(Block&)>& finish,
           const std::function<void(Block&)>& take);

// The loss of a text, summed block by block; see `Perplexity` in compgen/lm/mixture.py.
struct Perplexity {
  std::uint64_t sentences = 0, tokens = 0, unknown = 0;
  double loss = 0, loss_known = 0;

  void add(const Block& block);
  double including() const;
  double excluding() const;
};

// Lines for the sentences of a block: tokens, unknown and loss, or with `rescored` log_prob, tokens and unknown.
std::string sentence_rows(const Block& block, bool rescored);

// Lines for its tokens: sentence, position, log10, matched and known; `first` is the number of its first sentence.
std::string token_rows(const Block& block, std::uint64_t first);

}  // namespace compgen
