// The loops of training that wait for one step after another, forward and backward, on arrays that PyTorch holds:
// compgen/models/fed_loop.py and compgen/models/packed.py define them, and these names are theirs. What is no such loop (the
// gradients of weights, of keys and of values) are products over all steps at once, which PyTorch computes.
//
// Rows of a batch do not wait for one another: each thread has some of them from the first step to the last.
#pragma once

#include <cstdint>

extern "C" {

// All arrays are of float and lie by rows; NULL is none. Symbols as in compgen/models/fed_loop.py.
struct compgen_fed_loop {
  std::int64_t length, rows, hidden, fed, memories, size, tokens;  // L, B, H, F, n, A, T
  std::int64_t tanh, threads;
  const float *w_gates, *w_queries, *w_combine, *bias;   // (4H, H + F), (nA, F + H), (F, H + nA), (F)
  const float *keys, *values;                            // (B, n, T, A)
  const std::uint8_t* inside;                            // (B, n, T)
  const float *position_keys, *position_values;          // (n, L - 1 + T, A)
  const float *keep_hidden, *keep_fed;                   // (L, B, H), (L, B, F)
  float* states;                                         // (B, L + 1, H + F), of which step -1 is given
  // (L, B, 4H), (L + 1, B, H), (L, B, H), (L, B, nA), (L, B, H + nA). Gates and queries are at first what does not depend
  // on the state.
  float *gates, *cells, *squashed, *asked, *combined;
  float *scores, *weights, *outputs;                     // (L, B, n, T) twice, (L, B, F)
  // Of the backward pass alone. What is d_outputs at first is the gradient from outside.
  const float *of_states, *of_scores;                    // (L, B, H), (L, B, n, T)
  float *d_gates, *d_asked, *d_scores, *d_combined, *d_outputs;
  float *d_hidden, *d_cell, *d_fed;                      // (B, H), (B, H), (B, F), zeros
};

// Symbols as in compgen/models/packed.py.
struct compgen_packed {
  std::int64_t total, size, steps, threads;  // N, H, T
  const std::int64_t* counts;                // (T)
  const float* weights;                      // (2, 4H, H)
  float *gates, *states, *cells, *tanhs;     // (2, N, 4H), (2, N, H) three times; gates are at first what is given
  // Of the backward pass alone. What is d_states at first is the gradient from outside.
  float *d_states, *d_gates;
};

}  // extern "C"

namespace compgen {

// Those of an instruction set. They throw system_error if no such number of threads can be started.
struct Loops {
  void (*fed_forward)(const compgen_fed_loop&);
  void (*fed_backward)(const compgen_fed_loop&);
  void (*packed_forward)(const compgen_packed&);
  void (*packed_backward)(const compgen_packed&);
};

}  // namespace compgen
