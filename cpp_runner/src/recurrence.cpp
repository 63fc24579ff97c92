#include "recurrence.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <new>

#include "functions.h"
#include "product.h"
#include "sums.h"
#include "threads.h"

// Of libgomp, where the process has it already, as PyTorch has; else NULL.
extern "C" __attribute__((weak, visibility("default"))) void GOMP_parallel(void (*work)(void*), void* of, unsigned threads,
                                                                           unsigned flags);

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {
namespace {

constexpr float MASKED = -1e9F;  // the score of a token outside, as in compgen/models/attention.py

using Factor = Right<float>;

// Some rows of a batch, which a thread has.
struct Share {
  std::int64_t first, rows;
};

// Has threads do shares of `rows`, each as large as the others: PyTorch's own threads, where it has some. Those wait for
// their next work without leaving their processors, so that others beside them would wait for a processor.
template <class Work>
void in_shares(std::int64_t rows, std::int64_t threads, const Work& work) {
  const std::int64_t shares = std::max<std::int64_t>(1, std::min(threads, rows));
  const auto piece = [&](std::size_t number) {
    const auto k = static_cast<std::int64_t>(number);
    work(Share{rows * k / shares, rows * (k + 1) / shares - rows * k / shares});
  };
  if (shares == 1) return piece(0);
  const auto count = static_cast<std::size_t>(shares);
  if (GOMP_parallel == nullptr) return share(count, static_cast<int>(shares), [&] { return piece; });
  std::atomic<std::size_t> next{0};
  std::atomic<bool> no_memory{false};
  auto some = [&] {  // of the shares: all of them are done, however many threads there are
    try {
      for (std::size_t number; (number = next.fetch_add(1)) < count;) piece(number);
    } catch (const std::bad_alloc&) {
      no_memory = true;
    }
  };
  GOMP_parallel([](void* of) { (*static_cast<decltype(some)*>(of))(); }, &some, static_cast<unsigned>(shares), 0);
  if (no_memory) throw std::bad_alloc();
}

// Weights (N, K). Transposed, they multiply rows of K numbers; as they are, rows of N numbers.
struct Weights {
  Factor* factor;
  const float* matrix;
  bool transposed;
};

// Copies weights into the order in which products read them; each thread copies some of their panels.
void put(std::initializer_list<Weights> all, std::int64_t threads) {
  std::int64_t total = 0;
  for (const Weights& each : all) total += each.factor->panels();
  in_shares(total, threads, [&](const Share& mine) {
    std::int64_t first = 0;  // the number of the first panel of each
    for (const Weights& each : all) {
      const std::int64_t end = std::min(each.factor->panels(), mine.first + mine.rows - first);
      for (std::int64_t panel = std::max<std::int64_t>(0, mine.first - first); panel < end; ++panel) {
        each.transposed ? each.factor->put_transposed(panel, each.matrix) : each.factor->put(panel, each.matrix);
      }
      first += each.factor->panels();
    }
  });
}

// `out` (rows, columns of the factor) = or += from (rows, width) x factor.
void multiply(Left<float>& left, const float* from, std::int64_t rows, std::int64_t width, std::int64_t stride,
              const Factor& factor, float* out, std::int64_t out_stride, bool add) {
  left.shape(rows, width);
  left.put(0, from, width, stride);
  factor.product(left, out, out_stride, nullptr, add);
}

// to = or += from, times the factors of dropout where there are some.
template <bool ADD>
void drop(const float* from, const float* factors, std::int64_t at, float* to, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t k = 0; k < count; ++k) {
    const float kept = factors ? from[k] * factors[at + k] : from[k];
    to[k] = ADD ? to[k] + kept : kept;
  }
}

// The LSTM cell, as in compgen/models/cell.py: gates (4H) are input, forget, output, candidate.
void step_cell(float* gates, const float* before, float* cell, float* squashed, float* hidden, std::int64_t h) {
#pragma GCC ivdep
  for (std::int64_t k = 0; k < h; ++k) {
    const float enter = sigmoid(gates[k]), forget = sigmoid(gates[h + k]), leave = sigmoid(gates[2 * h + k]);
    const float candidate = tangent(gates[3 * h + k]);
    gates[k] = enter, gates[h + k] = forget, gates[2 * h + k] = leave, gates[3 * h + k] = candidate;
    cell[k] = forget * (before ? before[k] : 0.0F) + enter * candidate;
    squashed[k] = tangent(cell[k]);
    hidden[k] = leave * squashed[k];
  }
}

// From the gradient of the hidden state that of the gates' sums; that of the cell becomes that of the cell before.
void step_cell_back(const float* gates, const float* before, const float* squashed, const float* d_hidden, float* d_cell,
                    float* d_gates, std::int64_t h) {
#pragma GCC ivdep
  for (std::int64_t k = 0; k < h; ++k) {
    const float enter = gates[k], forget = gates[h + k], leave = gates[2 * h + k], candidate = gates[3 * h + k];
    const float d = d_cell[k] + d_hidden[k] * leave * (1 - squashed[k] * squashed[k]);
    d_gates[k] = d * candidate * enter * (1 - enter);
    d_gates[h + k] = d * (before ? before[k] : 0.0F) * forget * (1 - forget);
    d_gates[2 * h + k] = d_hidden[k] * squashed[k] * leave * (1 - leave);
    d_gates[3 * h + k] = d * enter * (1 - candidate * candidate);
    d_cell[k] = d * forget;
  }
}

// One row's attention to one of its memories at one step: where what it reads lies.
struct Place {
  std::int64_t first;   // of the memory's tokens, in (B, n, T)
  std::int64_t weight;  // of its weights, in (L, B, n, T)
  std::int64_t length;  // up to the last token inside; all if none is
  const float *keys, *values;              // (T, A)
  const float *moved_keys, *moved_values;  // what is added to those of token 0 for its position
  std::int64_t by;                         // from there to the next token's; 0 without positions, where zeros are added

  Place(const compgen_fed_loop& all, const Aligned<float>& zeros, std::int64_t step, std::int64_t row, std::int64_t slot)
      : first((row * all.memories + slot) * all.tokens),
        weight(step * all.rows * all.memories * all.tokens + first),
        length(all.tokens),
        keys(all.keys + first * all.size),
        values(all.values + first * all.size),
        moved_keys(zeros.data()),
        moved_values(zeros.data()),
        by(all.position_keys ? all.size : 0) {
    while (length > 0 && !all.inside[first + length - 1]) --length;
    if (length == 0) length = all.tokens;
    if (by == 0) return;
    const std::int64_t near = by * (slot * (all.length - 1 + all.tokens) + all.length - 1 - step);
    moved_keys = all.position_keys + near, moved_values = all.position_values + near;
  }
};

// What threads share of a forward pass: weights in the order in which products read them.
struct Forward {
  const compgen_fed_loop& loop;
  Factor gates, queries, output;
  Aligned<float> zeros;

  explicit Forward(const compgen_fed_loop& all)
      : loop(all),
        gates(all.hidden + all.fed, 4 * all.hidden),
        queries(all.fed + all.hidden, all.memories * all.size),
        output(all.hidden + all.memories * all.size, all.fed),
        zeros(static_cast<std::size_t>(all.size)) {
    put({{&gates, all.w_gates, true}, {&queries, all.w_queries, true}, {&output, all.w_combine, true}}, all.threads);
  }

  void operator()(const Share& mine) const {
    Left<float> left;
    for (std::int64_t t = 0; t < loop.length; ++t) step(t, mine, left);
  }

  void step(std::int64_t t, const Share& mine, Left<float>& left) const {
    const std::int64_t h = loop.hidden, f = loop.fed, both = h + f, stride = (loop.length + 1) * both;
    const std::int64_t na = loop.memories * loop.size, begin = t * loop.rows + mine.first;
    float* const state = loop.states + mine.first * stride + t * both;  // [h, fed] of the step before, then of this one
    float* const gates_now = loop.gates + begin * 4 * h;
    multiply(left, state, mine.rows, both, stride, gates, gates_now, 4 * h, true);
    for (std::int64_t row = 0; row < mine.rows; ++row) {
      const std::int64_t at = (begin + row) * h;
      step_cell(gates_now + row * 4 * h, loop.cells + at, loop.cells + at + loop.rows * h, loop.squashed + at,
                state + row * stride + both, h);
    }
    float* const asked = loop.asked + begin * na;
    multiply(left, state + h, mine.rows, both, stride, queries, asked, na, true);
    if (loop.tanh) {
#pragma GCC ivdep
      for (std::int64_t k = 0; k < mine.rows * na; ++k) asked[k] = tangent(asked[k]);
    }
    float* const combined = loop.combined + begin * (h + na);
    for (std::int64_t row = 0; row < mine.rows; ++row) {
      for (std::int64_t slot = 0; slot < loop.memories; ++slot) attend(t, mine.first + row, slot);
      drop<false>(state + row * stride + both, loop.keep_hidden, (begin + row) * h, combined + row * (h + na), h);
    }
    float* const u = loop.outputs + begin * f;
    for (std::int64_t row = 0; row < mine.rows; ++row) std::copy_n(loop.bias, f, u + row * f);
    multiply(left, combined, mine.rows, h + na, h + na, output, u, f, true);
    for (std::int64_t row = 0; row < mine.rows; ++row) {
      drop<false>(u + row * f, loop.keep_fed, (begin + row) * f, state + row * stride + both + h, f);
    }
  }

  // Writes scores and weights, and the context behind the hidden state.
  void attend(std::int64_t t, std::int64_t row, std::int64_t slot) const {
    const Place at(loop, zeros, t, row, slot);
    const std::int64_t a = loop.size, na = loop.memories * a, line = t * loop.rows + row;
    const float* const query = loop.asked + line * na + slot * a;
    const float scale = 1.0F / std::sqrt(static_cast<float>(a));
    float *const scores = loop.scores + at.weight, *const weights = loop.weights + at.weight;
    for_width<float>(a, [&](auto registers) {
      const std::int64_t size = registers > 0 ? registers * LANES<float> : a;
      for (std::int64_t j = 0; j < at.length; ++j) {
        scores[j] = dot(query, at.keys + j * size, at.moved_keys + j * at.by, size) * scale;
      }
    });
    for (std::int64_t j = 0; j < at.length; ++j) scores[j] = loop.inside[at.first + j] ? scores[j] : MASKED;
    float highest = std::numeric_limits<float>::lowest(), total = 0;
    for (std::int64_t j = 0; j < at.length; ++j) highest = std::max(highest, scores[j]);
    for (std::int64_t j = 0; j < at.length; ++j) weights[j] = std::exp(scores[j] - highest);
    for (std::int64_t j = 0; j < at.length; ++j) total += weights[j];
    for (std::int64_t j = 0; j < at.length; ++j) weights[j] *= 1.0F / total;
    for (std::int64_t j = at.length; j < loop.tokens; ++j) scores[j] = MASKED, weights[j] = 0;
    const auto moved = [&](std::int64_t j) { return at.moved_values + j * at.by; };
    weighted_sum(weights, at.values, moved, at.length, a,
                 loop.combined + line * (loop.hidden + na) + loop.hidden + slot * a);
  }
};

struct Backward {
  const compgen_fed_loop& loop;
  Factor gates, queries, output;
  Aligned<float> zeros;

  explicit Backward(const compgen_fed_loop& all)
      : loop(all),
        gates(4 * all.hidden, all.hidden + all.fed),
        queries(all.memories * all.size, all.fed + all.hidden),
        output(all.fed, all.hidden + all.memories * all.size),
        zeros(static_cast<std::size_t>(all.size)) {
    put({{&gates, all.w_gates, false}, {&queries, all.w_queries, false}, {&output, all.w_combine, false}}, all.threads);
  }

  void operator()(const Share& mine) const {
    Left<float> left;
    Aligned<float> of_queries, before;
    const std::int64_t both = loop.hidden + loop.fed;
    room(of_queries, mine.rows * both), room(before, mine.rows * both);
    for (std::int64_t t = loop.length - 1; t >= 0; --t) step(t, mine, left, of_queries.data(), before.data());
  }

  void step(std::int64_t t, const Share& mine, Left<float>& left, float* of_queries, float* before) const {
    const std::int64_t h = loop.hidden, f = loop.fed, both = h + f, na = loop.memories * loop.size;
    const std::int64_t begin = t * loop.rows + mine.first;
    float *const d_hidden = loop.d_hidden + mine.first * h, *const d_fed = loop.d_fed + mine.first * f;
    float *const d_outputs = loop.d_outputs + begin * f, *const d_asked = loop.d_asked + begin * na;
    drop<true>(d_fed, loop.keep_fed, begin * f, d_outputs, mine.rows * f);
    multiply(left, d_outputs, mine.rows, f, f, output, loop.d_combined + begin * (h + na), h + na, false);
    for (std::int64_t row = 0; row < mine.rows; ++row) {
      const std::int64_t line = begin + row;
      float* const to = d_hidden + row * h;
      drop<true>(loop.d_combined + line * (h + na), loop.keep_hidden, line * h, to, h);
      for (std::int64_t k = 0; loop.of_states && k < h; ++k) to[k] += loop.of_states[line * h + k];
      for (std::int64_t slot = 0; slot < loop.memories; ++slot) attend(t, mine.first + row, slot);
    }
    for (std::int64_t k = 0; loop.tanh && k < mine.rows * na; ++k) {
      const float asked = loop.asked[begin * na + k];
      d_asked[k] *= 1 - asked * asked;
    }
    multiply(left, d_asked, mine.rows, na, na, queries, of_queries, both, false);  // of [fed, hidden]
    for (std::int64_t row = 0; row < mine.rows; ++row) {
      float* const to = d_hidden + row * h;
      for (std::int64_t k = 0; k < h; ++k) to[k] += of_queries[row * both + f + k];
      const std::int64_t at = (begin + row) * h;
      step_cell_back(loop.gates + at * 4, loop.cells + at, loop.squashed + at, to, loop.d_cell + (mine.first + row) * h,
                     loop.d_gates + at * 4, h);
    }
    multiply(left, loop.d_gates + begin * 4 * h, mine.rows, 4 * h, 4 * h, gates, before, both, false);  // of [hidden, fed]
    for (std::int64_t row = 0; row < mine.rows; ++row) {
      std::copy_n(before + row * both, h, d_hidden + row * h);
      for (std::int64_t k = 0; k < f; ++k) {
        d_fed[row * f + k] = before[row * both + h + k] + of_queries[row * both + k];
      }
    }
  }

  // From the gradient of the context writes those of sums (T) and of the query.
  void attend(std::int64_t t, std::int64_t row, std::int64_t slot) const {
    const Place at(loop, zeros, t, row, slot);
    const std::int64_t a = loop.size, na = loop.memories * a, line = t * loop.rows + row;
    const float* const of_context = loop.d_combined + line * (loop.hidden + na) + loop.hidden + slot * a;
    const float scale = 1.0F / std::sqrt(static_cast<float>(a));
    const float* const weights = loop.weights + at.weight;
    float* const d_scores = loop.d_scores + at.weight;
    for_width<float>(a, [&](auto registers) {
      const std::int64_t size = registers > 0 ? registers * LANES<float> : a;
      for (std::int64_t j = 0; j < at.length; ++j) {
        d_scores[j] = dot(of_context, at.values + j * size, at.moved_values + j * at.by, size);
      }
    });
    float mean = 0;
    for (std::int64_t j = 0; j < at.length; ++j) mean += weights[j] * d_scores[j];
    for (std::int64_t j = 0; j < at.length; ++j) {
      const float outside = loop.of_scores ? loop.of_scores[at.weight + j] : 0.0F;
      d_scores[j] = loop.inside[at.first + j] ? (weights[j] * (d_scores[j] - mean) + outside) * scale : 0.0F;
    }
    std::fill(d_scores + at.length, d_scores + loop.tokens, 0.0F);
    const auto moved = [&](std::int64_t j) { return at.moved_keys + j * at.by; };
    weighted_sum(d_scores, at.keys, moved, at.length, a, loop.d_asked + line * na + slot * a);
  }
};

// A direction of the encoder that reads no padding, from the first step to the last.
void encode(const compgen_packed& all, std::int64_t direction) {
  const std::int64_t h = all.size;
  Factor weights(h, 4 * h);
  put({{&weights, all.weights + direction * 4 * h * h, true}}, 1);
  Left<float> left;
  float* const gates = all.gates + direction * all.total * 4 * h;
  const std::int64_t offset = direction * all.total * h;
  float *const states = all.states + offset, *const cells = all.cells + offset, *const tanhs = all.tanhs + offset;
  for (std::int64_t step = 0, start = 0, former = 0; step < all.steps; former = start, start += all.counts[step++]) {
    const std::int64_t count = all.counts[step];
    if (step > 0) multiply(left, states + former * h, count, h, h, weights, gates + start * 4 * h, 4 * h, true);
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t at = (start + row) * h;
      step_cell(gates + at * 4, step > 0 ? cells + (former + row) * h : nullptr, cells + at, tanhs + at, states + at, h);
    }
  }
}

void encode_back(const compgen_packed& all, std::int64_t direction) {
  const std::int64_t h = all.size, offset = direction * all.total * h;
  const Factor back(all.weights + direction * 4 * h * h, 4 * h, h);
  Left<float> left;
  Aligned<float> d_cell(static_cast<std::size_t>(all.counts[0] * h));
  const float *const gates = all.gates + offset * 4, *const cells = all.cells + offset, *const tanhs = all.tanhs + offset;
  float *const d_states = all.d_states + offset, *const d_gates = all.d_gates + offset * 4;
  std::int64_t start = all.total;
  for (std::int64_t step = all.steps - 1; step >= 0; --step) {
    const std::int64_t count = all.counts[step];
    start -= count;
    const std::int64_t former = step > 0 ? start - all.counts[step - 1] : 0;
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t at = (start + row) * h;
      step_cell_back(gates + at * 4, step > 0 ? cells + (former + row) * h : nullptr, tanhs + at, d_states + at,
                     d_cell.data() + row * h, d_gates + at * 4, h);
    }
    if (step > 0) multiply(left, d_gates + start * 4 * h, count, 4 * h, 4 * h, back, d_states + former * h, h, true);
  }
}

template <void (*OF)(const compgen_packed&, std::int64_t)>
void both_directions(const compgen_packed& all) {
  in_shares(2, all.threads, [&](const Share& mine) {
    for (std::int64_t direction = mine.first; direction < mine.first + mine.rows; ++direction) OF(all, direction);
  });
}

}  // namespace

Loops loops() {
  return {[](const compgen_fed_loop& all) { in_shares(all.rows, all.threads, Forward(all)); },
          [](const compgen_fed_loop& all) { in_shares(all.rows, all.threads, Backward(all)); },
          both_directions<encode>, both_directions<encode_back>};
}

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
