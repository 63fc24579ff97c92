#include "step.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "errors.h"
#include "factor.h"
#include "functions.h"
#include "sums.h"

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {
namespace {

constexpr double BANNED = -1e9;  // the logit of a token that may not come
constexpr double LEAST = 1e-20;  // added to probabilities, so that they have logarithms

// Intermediate results of a step; each thread has its own.
template <class Real>
struct Scratch {
  Operand<Real> operand;
  Aligned<Real> gates, queries, contexts, weights, peaks, logits;
};

// Symbols as in compgen/models: H hidden, F output (S, how much of it is fed back: F or 0), n memories, A attention, K
// clip of relative positions, V vocabulary, T tokens of a memory with its padding.
template <class Real>
struct OwnStep final : Step<Real> {
  std::int64_t h, f, s, n, a, clip, v;
  bool tanh, copying;
  Aligned<Real> token_gates, token_queries;          // (V, 4H), (V, nA)
  Factor<Real> state_gates, state_queries;           // (S + H, 4H), (S + H, nA)
  Aligned<Real> position_keys, position_values;      // (n, 2K + 1, A); zeros if K is 0
  Factor<Real> combine, project;                     // (H + nA, F), (F, V)
  Aligned<Real> combine_bias, project_bias;          // (F), (V)

  explicit OwnStep(const Bundle& bundle)
      : h(bundle.hidden),
        f(bundle.output),
        s(bundle.network.feed ? f : 0),
        n(bundle.prototypes),
        a(bundle.attention),
        clip(bundle.network.positions),
        v(static_cast<std::int64_t>(bundle.vocabulary.size())),
        tanh(bundle.network.tanh),
        copying(bundle.network.copying) {
    const Safetensors file(bundle.file(STEP_WEIGHTS));
    const auto factor = [&file](const char* name, std::int64_t depth, std::int64_t columns) {
      return Factor<Real>(file, name, {depth, columns}, Scales::OF_FEATURES);
    };
    token_gates = file.reals<Real>("token_gates", {v, 4 * h});
    state_gates = factor("state_gates", s + h, 4 * h);
    combine = factor("combine", h + n * a, f);
    combine_bias = file.reals<Real>("combine_bias", {f});
    project = factor("project", f, v);
    project_bias = file.reals<Real>("project_bias", {v});
    if (n == 0) return;
    token_queries = file.reals<Real>("token_queries", {v, n * a});
    state_queries = factor("state_queries", s + h, n * a);
    const std::int64_t positions = 2 * clip + 1;
    if (clip == 0) {
      position_keys.resize(static_cast<std::size_t>(n * a)), position_values = position_keys;
      return;
    }
    position_values = file.reals<Real>("position_values", {n, positions, a});
    const auto keys = file.reals<Real>("position_keys", {n, a, positions});
    position_keys.resize(keys.size());
    for (std::int64_t row = 0; row < n * positions; ++row) {
      const std::int64_t from = row / positions * a * positions + row % positions;
      for (std::int64_t k = 0; k < a; ++k) {
        position_keys[static_cast<std::size_t>(row * a + k)] = keys[static_cast<std::size_t>(from + k * positions)];
      }
    }
  }

  void operator()(Batch<Real>& batch) const override {
    thread_local Scratch<Real> scratch;
    const std::int64_t rows = batch.rows;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto token = batch.token[static_cast<std::size_t>(row)];
      if (token < 0 || token >= v) throw UserError("the network gives a token outside the vocabulary");
    }
    recur(batch, scratch);
    if (n > 0) attend(batch, scratch);
    Real* const u = batch.next_fed.data();
    combine.shape(scratch.operand, rows);
    combine.put(scratch.operand, 0, batch.next_hidden.data(), h, h);
    if (n > 0) combine.put(scratch.operand, h, scratch.contexts.data(), n * a, n * a);
    combine.product(scratch.operand, u, f);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t k = 0; k < f; ++k) u[row * f + k] += combine_bias[static_cast<std::size_t>(k)];
    }
    Real* const logits = room(scratch.logits, rows * registers(v));
    project.shape(scratch.operand, rows);
    project.put(scratch.operand, 0, u, f, f);
    project.product(scratch.operand, logits, registers(v));
    for (std::int64_t row = 0; row < rows; ++row) write(batch, scratch, row);
  }

  // A count of numbers, rounded up to whole registers.
  static std::int64_t registers(std::int64_t count) { return rounded_up(count, LANES<Real>); }

  // The state [fed, hidden] of the first rows times a matrix.
  void multiply_state(const Batch<Real>& batch, std::int64_t rows, const Aligned<Real>& hidden,
                      const Factor<Real>& factor, Real* out, std::int64_t stride, Scratch<Real>& scratch) const {
    factor.shape(scratch.operand, rows);
    if (s > 0) factor.put(scratch.operand, 0, batch.fed.data(), s, f);
    factor.put(scratch.operand, s, hidden.data(), h, h);
    factor.product(scratch.operand, out, stride);
  }

  // Whether a row's state is zero, as it is before the first token.
  bool is_zero(const Batch<Real>& batch, std::int64_t row) const {
    const auto zeros = [row](const Aligned<Real>& state, std::int64_t size, std::int64_t stride) {
      const Real* const from = state.data() + row * stride;
      bool all = true;  // to the end, since a loop that stops early is none of vectors
      for (std::int64_t k = 0; k < size; ++k) all &= from[k] == 0;
      return all;
    };
    return batch.position[static_cast<std::size_t>(row)] == 0 && zeros(batch.hidden, h, h) && zeros(batch.fed, s, f);
  }

  // The LSTM: gates in the order input, forget, candidate, output.
  void recur(Batch<Real>& batch, Scratch<Real>& scratch) const {
    Real* const all = room(scratch.gates, batch.rows * 4 * h);
    std::int64_t begun = batch.rows;  // without the last rows whose state is zero, and so their products
    while (begun > 0 && is_zero(batch, begun - 1)) --begun;
    multiply_state(batch, begun, batch.hidden, state_gates, all, 4 * h, scratch);
    std::fill_n(all + begun * 4 * h, (batch.rows - begun) * 4 * h, Real{0});
    for (std::int64_t row = 0; row < batch.rows; ++row) {
      const Real* const gates = all + row * 4 * h;
      const Real* const read = token_gates.data() + batch.token[static_cast<std::size_t>(row)] * 4 * h;
      const Real* const cell = batch.cell.data() + row * h;
      Real* const next_cell = batch.next_cell.data() + row * h;
      Real* const next_hidden = batch.next_hidden.data() + row * h;
      // One division for each number. Two loops rather than one, since a processor overlaps more short chains of
      // operations than long ones.
#pragma GCC ivdep
      for (std::int64_t k = 0; k < h; ++k) {  // forget * cell + enter * candidate
        const auto enter = sigmoid_quotient(gates[k] + read[k]), forget = sigmoid_quotient(gates[h + k] + read[h + k]);
        const auto candidate = tangent_quotient(gates[2 * h + k] + read[2 * h + k]);
        const Real entering = enter.above * candidate.above, whole = enter.below * candidate.below;
        next_cell[k] = (forget.above * cell[k] * whole + entering * forget.below) / (forget.below * whole);
      }
#pragma GCC ivdep
      for (std::int64_t k = 0; k < h; ++k) {  // leave * tanh(cell)
        const auto leave = sigmoid_quotient(gates[3 * h + k] + read[3 * h + k]);
        const auto squashed = tangent_quotient(next_cell[k]);
        next_hidden[k] = leave.above * squashed.above / (leave.below * squashed.below);
      }
    }
  }

  // Attention with relative positions (compgen/models/attention.py). Leaves contexts (B, nA), and for copying the
  // weights (B, n, T in whole registers) and peaks (B, n) of the scores: exp(score) = weight * exp(peak).
  void attend(const Batch<Real>& batch, Scratch<Real>& scratch) const {
    const std::int64_t rows = batch.rows;
    Real* const queries = room(scratch.queries, rows * n * a);
    room(scratch.contexts, rows * n * a), room(scratch.peaks, rows * n);
    room(scratch.weights, rows * n * registers(batch.width));
    multiply_state(batch, rows, batch.next_hidden, state_queries, queries, n * a, scratch);
    for (std::int64_t row = 0; row < rows; ++row) {
      const Real* const read = token_queries.data() + batch.token[static_cast<std::size_t>(row)] * n * a;
      Real* const query = queries + row * n * a;
      for (std::int64_t k = 0; k < n * a; ++k) query[k] += read[k];
      if (!tanh) continue;
#pragma GCC ivdep
      for (std::int64_t k = 0; k < n * a; ++k) query[k] = tangent(query[k]);
    }
    // Each part for all memories before the next, because the parts of one wait for one another.
    for (std::int64_t memory = 0; memory < rows * n; ++memory) score(batch, memory, scratch);
    for (std::int64_t memory = 0; memory < rows * n; ++memory) weigh(batch, memory, scratch);
    for (std::int64_t memory = 0; memory < rows * n; ++memory) add_up_values(batch, memory, scratch);
  }

  // Where the vector of a token's position, relative to that which is written, begins in the arrays of positions.
  auto place_of_token(const Batch<Real>& batch, std::int64_t memory) const {
    const std::int64_t step = batch.position[static_cast<std::size_t>(memory / n)], first = memory % n * (2 * clip + 1);
    return [=](std::int64_t j) { return (first + std::clamp(j - step, -clip, clip) + clip) * a; };
  }

  Real* weights_of(const Batch<Real>& batch, std::int64_t memory, Scratch<Real>& scratch) const {
    return scratch.weights.data() + memory * registers(batch.width);
  }

  // The scores of a memory's tokens.
  void score(const Batch<Real>& batch, std::int64_t memory, Scratch<Real>& scratch) const {
    const auto* const read = batch.memories.data() + memory;
    // Keys and values of all rows are more than the caches hold, so those of the next are prefetched; with 64-byte
    // registers, this was measured to take longer than it saves.
    [[maybe_unused]] const auto* const next = memory + 1 < batch.rows * n ? read + 1 : read;
    const auto place = place_of_token(batch, memory);
    const Real* const query = scratch.queries.data() + memory * a;
    const Real scale = Real{1} / std::sqrt(static_cast<Real>(a));
    Real* const scores = weights_of(batch, memory, scratch);
    for_width<Real>(a, [&](auto registers) {
      const std::int64_t size = registers > 0 ? registers * LANES<Real> : a;
      for (std::int64_t j = 0; j < read->length; ++j) {
#if VECTOR_BYTES < 64
        ask_for(next->keys + j * size, size), ask_for(next->values + j * size, size);
#endif
        scores[j] = dot(query, read->keys + j * size, position_keys.data() + place(j), size) * scale;
      }
    });
  }

  // Turns a memory's scores into weights that are not yet divided by their sum.
  void weigh(const Batch<Real>& batch, std::int64_t memory, Scratch<Real>& scratch) const {
    const std::int64_t length = batch.memories[static_cast<std::size_t>(memory)].length;
    Real* const weights = weights_of(batch, memory, scratch);
    Real highest = -std::numeric_limits<Real>::max();
    for (std::int64_t j = 0; j < length; ++j) highest = std::max(highest, weights[j]);
    scratch.peaks[static_cast<std::size_t>(memory)] = highest;
    apply(weights, length, [highest](Real score) { return std::exp(score - highest); });
  }

  // The context: a memory's values by their weights.
  void add_up_values(const Batch<Real>& batch, std::int64_t memory, Scratch<Real>& scratch) const {
    const auto& read = batch.memories[static_cast<std::size_t>(memory)];
    const Real* const weights = weights_of(batch, memory, scratch);
    Real total = 0;
    for (std::int64_t j = 0; j < read.length; ++j) total += weights[j];
    const auto place = place_of_token(batch, memory);
    Real* const context = scratch.contexts.data() + memory * a;
    weighted_sum(weights, read.values, [&](std::int64_t j) { return position_values.data() + place(j); }, read.length, a,
                 context);
    const Real share = Real{1} / total;
    for (std::int64_t i = 0; i < a; ++i) context[i] *= share;
  }

  // Words and copies in one distribution (appendix A.3 of R&R), and the token that the uniform number draws from it.
  void write(Batch<Real>& batch, Scratch<Real>& scratch, std::int64_t row) const {
    Real* const words = scratch.logits.data() + row * registers(v);
    Real highest = -std::numeric_limits<Real>::max(), total = 0;
    for (std::int64_t k = 0; k < v; ++k) {
      words[k] += project_bias[static_cast<std::size_t>(k)];
      highest = std::max(highest, words[k]);
    }
    const std::int64_t memories = copying ? n : 0;
    const Real* const peaks = scratch.peaks.data() + row * n;
    for (std::int64_t slot = 0; slot < memories; ++slot) highest = std::max(highest, peaks[slot]);
    Real* const log_probs = batch.log_probs.data() + row * v;
    for (std::int64_t k = 0; k < v; ++k) log_probs[k] = words[k] - highest;
    apply(words, v, [highest](Real word) { return std::exp(word - highest); });
    for (std::int64_t k = 0; k < v; ++k) total += words[k];
    for (std::int64_t slot = 0; slot < memories; ++slot) {
      const auto& memory = batch.memories[static_cast<std::size_t>(row * n + slot)];
      const Real* const weights = scratch.weights.data() + (row * n + slot) * registers(batch.width);
      const Real peak = std::exp(peaks[slot] - highest);
      for (std::int64_t j = 0; j < memory.length; ++j) {
        const std::int32_t token = memory.tokens[j];
        if (token < 0 || token >= v) throw UserError("a prototype has a token outside the vocabulary");
        const Real copied = weights[j] * peak;
        words[token] += copied;
        total += copied;
      }
    }
    if (copying) {
      const Real share = Real{1} / total;
      apply(words, v, [share](Real word) { return std::log(word * share + static_cast<Real>(LEAST)); });
      std::copy_n(words, v, log_probs);
    } else {
      const Real all = std::log(total);
      for (std::int64_t k = 0; k < v; ++k) log_probs[k] -= all;
    }
    draw(batch, row, log_probs, words);
  }

  // Draws the next token. `weights` is memory for the distribution (V), in whole registers.
  void draw(Batch<Real>& batch, std::int64_t row, const Real* log_probs, Real* weights) const {
    const auto at = static_cast<std::size_t>(row);
    const std::int64_t position = batch.position[at];
    const Real warmth = batch.temperature[batch.half[at] > 0 ? 1 : 0];
    for (std::int64_t k = 0; k < v; ++k) {
      weights[k] = forbidden(k, position) ? static_cast<Real>(BANNED) : log_probs[k];
    }
    Real highest = -std::numeric_limits<Real>::max();
    for (std::int64_t k = 0; k < v; ++k) highest = std::max(highest, weights[k]);
    std::int64_t chosen = 0;
    if (warmth > 0) {
      apply(weights, v, [=](Real one) { return std::exp((one - highest) / warmth); });
      Real sum = 0;
      for (std::int64_t k = 0; k < v; ++k) weights[k] = sum += weights[k];
      const Real edge = batch.uniform[at] * sum;
      for (std::int64_t k = 0; k < v; ++k) chosen += weights[k] <= edge;
      chosen = std::min(chosen, v - 1);
    } else {
      while (chosen < v - 1 && weights[chosen] < highest) ++chosen;
    }
    batch.next_token[at] = chosen;
    batch.next_half[at] = std::max<std::int64_t>(batch.half[at], chosen == SEP);
  }
};

}  // namespace

template <class Real>
std::unique_ptr<const Step<Real>> make(const Bundle& bundle) {
  return std::make_unique<OwnStep<Real>>(bundle);
}

template std::unique_ptr<const Step<float>> make<float>(const Bundle&);
#if VECTOR_BYTES < 64  // see instructions.cpp
template std::unique_ptr<const Step<double>> make<double>(const Bundle&);
#endif

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
