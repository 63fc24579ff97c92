// A Transformer written for one thread and a processor's vector registers: what encoder.onnx and step.onnx compute
// (compgen/models/transformer.py). Sources have no padding, and what is kept of tokens is never copied.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aligned.h"
#include "bundle.h"

namespace compgen {

// Rows that are being written, one thread's own. N layers, states of d numbers, B rows, L tokens written of each.
template <class Real>
struct Writing {
  std::int64_t rows = 0, step = 0;         // B, L
  std::vector<std::int64_t> token;         // (B) the last written
  std::vector<std::int64_t> source;        // (B) the number of the source that each answers
  std::vector<std::int64_t> starts;        // where each source begins among the tokens of all, and where the last ends
  std::vector<Aligned<Real>> memory;       // N of (tokens, 2d): keys and values of the sources
  std::vector<Aligned<Real>> written;      // N of (room, 2d): keys and values of all tokens ever written
  std::vector<std::int64_t> places;        // (L, B): which of these are a row's tokens, so that rows share beginnings
  std::vector<Real> log_probs;             // (B, V) of the next token

  // Places for the next token of each row. They lie in blocks, where a row has RUN tokens side by side.
  void extend() {
    if (step == 0 || step - first_ == RUN || rows > block_rows_) {
      begin_ = step == 0 ? 0 : begin_ + block_rows_ * RUN;
      first_ = step, block_rows_ = rows;
    }
    for (std::int64_t row = 0; row < rows; ++row) places.push_back(begin_ + row * RUN + step - first_);
    ++step;
  }
  std::int64_t room() const { return begin_ + block_rows_ * RUN; }

  // Goes on with these rows, in this order; a row may be there more than once.
  void keep(const std::vector<std::int64_t>& kept) {
    const auto gather = [&](const std::vector<std::int64_t>& from, std::int64_t times) {
      std::vector<std::int64_t> to;
      to.reserve(kept.size() * static_cast<std::size_t>(times));
      for (std::int64_t k = 0; k < times; ++k) {
        for (const auto row : kept) to.push_back(from[static_cast<std::size_t>(k * rows + row)]);
      }
      return to;
    };
    token = gather(token, 1), source = gather(source, 1), places = gather(places, step);
    rows = static_cast<std::int64_t>(kept.size());
  }

 private:
  static constexpr std::int64_t RUN = 16;
  std::int64_t begin_ = 0, first_ = 0, block_rows_ = 0;  // of the last block: its place, its first step, its rows
};

template <class Real>
class Transformer {
 public:
  virtual ~Transformer() = default;
  // Begins with sources (B, S), each with its end symbol, padded. Threads may call it and `step` at the same time.
  virtual void open(const std::vector<std::int64_t>& sources, std::int64_t rows, std::int64_t width,
                    Writing<Real>& writing) const = 0;
  // Reads the last token of each row, and sets `log_probs`.
  virtual void step(Writing<Real>& writing) const = 0;
};

// A bundle's Transformer in the chosen instruction set. Throws UserError: the bundle has no weights for it, or not those
// of its sizes.
template <class Real>
std::unique_ptr<const Transformer<Real>> make_transformer_step(const Bundle& bundle);

}  // namespace compgen
