#include "transformer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "errors.h"
#include "factor.h"
#include "safetensors.h"

#include "begin_instructions.h"

namespace compgen::INSTRUCTIONS {
namespace {

constexpr double EPSILON = 1e-5;       // of torch.nn.LayerNorm
constexpr std::int64_t TOGETHER = 96;  // tokens of sources that are encoded together: their states stay in the cache
constexpr std::int64_t AHEAD = 16;     // how many kept tokens ahead of what is read are prefetched

// Intermediate results of a step; each thread has its own.
template <class Real>
struct Scratch {
  Operand<Real> left;
  Aligned<Real> states, normal, wide, queries, contexts, scores, wave;
  std::vector<const Real*> kept;
};

// x W + b; a normalisation before it is part of W and b.
template <class Real>
class Linear {
 public:
  Linear() = default;
  // W is the array `name`, or in integers, of which all sizes but the first are columns; b is `name`_bias.
  Linear(const Safetensors& file, const std::string& name, const std::vector<std::int64_t>& sizes)
      : depth_(sizes[0]), weights_(file, name, sizes, Scales::OF_ROWS) {
    const std::int64_t columns = std::accumulate(sizes.begin() + 1, sizes.end(), std::int64_t{1}, std::multiplies<>());
    bias_ = file.reals<Real>(name + "_bias", {columns});
    bias_.resize(static_cast<std::size_t>(rounded_up(columns, LANES<Real>)));
  }

  // Writes the product of rows (B, depth), or adds it, to a matrix whose rows are `stride` apart.
  void operator()(Operand<Real>& left, const Real* from, std::int64_t rows, Real* out, std::int64_t stride,
                  bool add = false) const {
    weights_.shape(left, rows);
    weights_.put(left, 0, from, depth_, depth_);
    weights_.product(left, out, stride, bias_.data(), add);
  }

 private:
  std::int64_t depth_ = 0;
  Factor<Real> weights_;
  Aligned<Real> bias_;  // in whole registers
};

// Of the encoder or of the decoder. h heads, K the farthest distance that attention tells apart.
template <class Real>
struct Layer {
  Linear<Real> attend, mix;        // (d, 3, h, d / h) queries, keys and values; (d, d)
  Aligned<Real> distances;         // (h, 2K + 1, d / h)
  Linear<Real> remember;           // (d, 2d), keys and values of the source for a layer of the decoder
  Linear<Real> query, across_mix;  // (d, d), of the decoder's attention to it
  Linear<Real> expand, contract;   // (d, inner), (inner, d)

  Layer(const Safetensors& file, const std::string& name, const TransformerSizes& sizes, bool decodes)
      : attend(file, name + "attend", {sizes.size, 3, sizes.heads, sizes.size / sizes.heads}),
        mix(file, name + "mix", {sizes.size, sizes.size}),
        expand(file, name + "expand", {sizes.size, sizes.inner}),
        contract(file, name + "contract", {sizes.inner, sizes.size}) {
    if (decodes) {
      remember = Linear<Real>(file, name + "remember", {sizes.size, 2 * sizes.size});
      query = Linear<Real>(file, name + "query", {sizes.size, sizes.size});
      across_mix = Linear<Real>(file, name + "across_mix", {sizes.size, sizes.size});
    }
    if (sizes.relative > 0) {
      distances = file.reals<Real>(name + "distances", {sizes.heads, 2 * sizes.relative + 1, sizes.size / sizes.heads});
    }
  }
};

template <class Real>
struct OwnTransformer final : Transformer<Real> {
  std::int64_t n, h, d, inner, clip, v;           // layers, heads, sizes, K, vocabulary
  Aligned<Real> embedding, source_embedding;      // (V, d), those of sources with their kinds
  Aligned<std::int8_t> positioned;                // (V), 1 for what has a position in a source
  Aligned<Real> frequency;                        // (d / 2) of sinusoids; empty with relative positions
  std::vector<Layer<Real>> encoder, decoder;      // N
  Linear<Real> project;                           // (d, V)

  explicit OwnTransformer(const Bundle& bundle)
      : n(bundle.transformer.layers),
        h(bundle.transformer.heads),
        d(bundle.transformer.size),
        inner(bundle.transformer.inner),
        clip(bundle.transformer.relative),
        v(static_cast<std::int64_t>(bundle.vocabulary.size())) {
    const Safetensors file(bundle.file(STEP_WEIGHTS));
    embedding = file.reals<Real>("embedding", {v, d});
    source_embedding = file.reals<Real>("source_embedding", {v, d});
    positioned = file.bytes("positioned", {v});
    if (clip == 0) frequency = file.reals<Real>("frequency", {d / 2});
    for (std::int64_t layer = 0; layer < n; ++layer) {
      const std::string number = std::to_string(layer) + ".";
      encoder.emplace_back(file, "encoder." + number, bundle.transformer, false);
      decoder.emplace_back(file, "decoder." + number, bundle.transformer, true);
    }
    project = Linear<Real>(file, "project", {d, v});
  }

  void open(const std::vector<std::int64_t>& sources, std::int64_t rows, std::int64_t width,
            Writing<Real>& writing) const override {
    thread_local Scratch<Real> scratch;
    writing.rows = rows, writing.step = 0;
    writing.token.assign(static_cast<std::size_t>(rows), BOS);
    writing.source.clear(), writing.places.clear(), writing.starts.assign(1, 0);
    writing.written.resize(static_cast<std::size_t>(n)), writing.memory.resize(static_cast<std::size_t>(n));
    std::vector<std::int64_t> tokens;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto begin = sources.begin() + row * width;
      tokens.insert(tokens.end(), begin, std::find(begin, begin + width, std::int64_t{PAD}));
      writing.source.push_back(row);
      writing.starts.push_back(static_cast<std::int64_t>(tokens.size()));
    }
    for (auto& one : writing.memory) room(one, static_cast<std::int64_t>(tokens.size()) * 2 * d);
    for (std::int64_t first = 0, last = 0; first < rows; first = last) {
      const auto start = [&](std::int64_t row) { return writing.starts[static_cast<std::size_t>(row)]; };
      while (last < rows && (last == first || start(last + 1) - start(first) <= TOGETHER)) ++last;
      encode(tokens, writing, first, last, scratch);
    }
  }

  void step(Writing<Real>& writing) const override {
    thread_local Scratch<Real> scratch;
    const std::int64_t rows = writing.rows;
    Real* const x = room(scratch.states, rows * d);
    const Real* const wave = wave_at(writing.step + 1, scratch);
    for (std::int64_t row = 0; row < rows; ++row) {
      embed(embedding, writing.token[static_cast<std::size_t>(row)], wave, x + row * d);
    }
    writing.extend();
    for (std::int64_t layer = 0; layer < n; ++layer) {
      const auto& weights = decoder[static_cast<std::size_t>(layer)];
      attend_to_written(weights, writing, layer, x, scratch);
      attend_to_source(weights, writing, layer, x, scratch);
      forward(weights, x, rows, scratch);
    }
    writing.log_probs.resize(static_cast<std::size_t>(rows * v));
    project(scratch.left, normal(x, rows, scratch), rows, writing.log_probs.data(), v);
    for (std::int64_t row = 0; row < rows; ++row) log_softmax(writing.log_probs.data() + row * v);
  }

  // Keys and values of sources first .. last - 1, by the encoder.
  void encode(const std::vector<std::int64_t>& tokens, Writing<Real>& writing, std::int64_t first, std::int64_t last,
              Scratch<Real>& scratch) const {
    const auto start = [&](std::int64_t row) { return writing.starts[static_cast<std::size_t>(row)]; };
    const std::int64_t from = start(first), count = start(last) - from;
    Real* const x = room(scratch.states, count * d);
    for (std::int64_t row = first; row < last; ++row) {
      std::int64_t place = 0;
      for (std::int64_t k = start(row); k < start(row + 1); ++k) {
        const std::int64_t token = tokens[static_cast<std::size_t>(k)];
        const bool has = token >= 0 && token < v && positioned[static_cast<std::size_t>(token)] != 0;
        embed(source_embedding, token, wave_at(has ? ++place : 0, scratch), x + (k - from) * d);
      }
    }
    for (const auto& layer : encoder) {
      Real* const all = room(scratch.wide, count * 3 * d);
      layer.attend(scratch.left, normal(x, count, scratch), count, all, 3 * d);
      Real* const contexts = room(scratch.contexts, count * d);
      scratch.kept.clear();
      for (std::int64_t k = 0; k < count; ++k) scratch.kept.push_back(all + k * 3 * d + d);
      for (std::int64_t row = first; row < last; ++row) {
        const std::int64_t begin = start(row) - from, end = start(row + 1) - from;
        for (std::int64_t k = begin; k < end; ++k) {
          attend(all + k * 3 * d, begin, end, layer.distances, k - begin, contexts + k * d, scratch);
        }
      }
      layer.mix(scratch.left, contexts, count, x, d, true);
      forward(layer, x, count, scratch);
    }
    const Real* const encoded = normal(x, count, scratch);
    for (std::size_t layer = 0; layer < decoder.size(); ++layer) {
      decoder[layer].remember(scratch.left, encoded, count, writing.memory[layer].data() + from * 2 * d, 2 * d);
    }
  }

  // Adds to states x (B, d) what attention to the tokens of their own rows gives.
  void attend_to_written(const Layer<Real>& weights, Writing<Real>& writing, std::int64_t layer, Real* x,
                         Scratch<Real>& scratch) const {
    const std::int64_t rows = writing.rows;
    Real* const all = room(scratch.wide, rows * 3 * d);
    weights.attend(scratch.left, normal(x, rows, scratch), rows, all, 3 * d);
    Real* const written = room(writing.written[static_cast<std::size_t>(layer)], writing.room() * 2 * d);
    const std::int64_t* const places = writing.places.data();
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(all + row * 3 * d + d, 2 * d, written + places[(writing.step - 1) * rows + row] * 2 * d);
    }
    Real* const contexts = room(scratch.contexts, rows * d);
    const std::int64_t count = writing.step;
    scratch.kept.clear();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t k = 0; k < count; ++k) scratch.kept.push_back(written + places[k * rows + row] * 2 * d);
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = row * count;
      attend(all + row * 3 * d, begin, begin + count, weights.distances, count - 1, contexts + row * d, scratch);
    }
    weights.mix(scratch.left, contexts, rows, x, d, true);
  }

  // Adds to states x (B, d) what attention to their sources gives.
  void attend_to_source(const Layer<Real>& weights, const Writing<Real>& writing, std::int64_t layer, Real* x,
                        Scratch<Real>& scratch) const {
    static const Aligned<Real> none;  // attention to the other side knows no distances
    const std::int64_t rows = writing.rows;
    const Real* const memory = writing.memory[static_cast<std::size_t>(layer)].data();
    Real* const queries = room(scratch.queries, rows * d);
    weights.query(scratch.left, normal(x, rows, scratch), rows, queries, d);
    Real* const contexts = room(scratch.contexts, rows * d);
    const auto source = [&](std::int64_t row) {
      return static_cast<std::size_t>(writing.source[static_cast<std::size_t>(row)]);
    };
    scratch.kept.clear();
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t end = writing.starts[source(row) + 1];
      for (std::int64_t k = writing.starts[source(row)]; k < end; ++k) scratch.kept.push_back(memory + k * 2 * d);
    }
    for (std::int64_t row = 0, begin = 0, end = 0; row < rows; ++row, begin = end) {
      end = begin + writing.starts[source(row) + 1] - writing.starts[source(row)];
      attend(queries + row * d, begin, end, none, 0, contexts + row * d, scratch);
    }
    weights.across_mix(scratch.left, contexts, rows, x, d, true);
  }

  // Adds to states x (B, d) what the feed-forward layer gives.
  void forward(const Layer<Real>& weights, Real* x, std::int64_t rows, Scratch<Real>& scratch) const {
    Real* const hidden = room(scratch.wide, rows * inner);
    weights.expand(scratch.left, normal(x, rows, scratch), rows, hidden, inner);
    for (std::int64_t k = 0; k < rows * inner; ++k) hidden[k] = std::max(hidden[k], Real{0});
    weights.contract(scratch.left, hidden, rows, x, d, true);
  }

  // What a query (d) finds in the kept tokens begin .. end - 1, each given by its keys (d) and values (d): the weighted
  // values (d). `at` is the query's own place among them.
  void attend(const Real* query, std::int64_t begin, std::int64_t end, const Aligned<Real>& distances,
              std::int64_t at, Real* context, Scratch<Real>& scratch) const {
    const auto last = static_cast<std::int64_t>(scratch.kept.size());
    const Real* const* const kept = scratch.kept.data();
    Real* const scores = room(scratch.scores, h * (end - begin));
    // Those of all rows and layers are more than the caches hold, so they are prefetched.
    for (std::int64_t k = begin + AHEAD; k < std::min(end + AHEAD, last); ++k) fetch(kept[k]);
    // Heads of the usual sizes have code with a constant number of sums, which stay in registers.
    const std::int64_t registers = d % (h * LANES<Real>) == 0 ? d / (h * LANES<Real>) : 0;
    if (registers == 2) attend_by<2>(query, kept + begin, end - begin, distances, at, scores, context);
    else if (registers == 4) attend_by<4>(query, kept + begin, end - begin, distances, at, scores, context);
    else attend_by<0>(query, kept + begin, end - begin, distances, at, scores, context);
  }

  void fetch(const Real* kept) const {
    for (std::int64_t k = 0; k < 2 * d; k += 64 / static_cast<std::int64_t>(sizeof(Real))) __builtin_prefetch(kept + k);
  }

  // The same with heads of N registers, or of any size if it is 0, for `count` tokens. `scores` is room for (h, count).
  template <std::int64_t N>
  void attend_by(const Real* query, const Real* const* kept, std::int64_t count, const Aligned<Real>& distances,
                 std::int64_t at, Real* scores, Real* context) const {
    using Vector = typename Register<Real>::Vector;
    const std::int64_t width = N > 0 ? N * LANES<Real> : d / h;
    for (std::int64_t k = 0; k < count; ++k) {
      for (std::int64_t head = 0; head < h; ++head) {
        scores[head * count + k] = dot(query + head * width, kept[k] + head * width, width);
      }
    }
    for (std::int64_t head = 0; !distances.empty() && head < h; ++head) {
      const Real* const far = distances.data() + (head * (2 * clip + 1) + clip) * width;
      for (std::int64_t k = 0; k < count; ++k) {
        scores[head * count + k] += dot(query + head * width, far + std::clamp(k - at, -clip, clip) * width, width);
      }
    }
    for (std::int64_t head = 0; head < h; ++head, scores += count, context += width) {
      softmax(scores, count);
      if constexpr (N > 0) {
        Vector sums[N] = {};
        for (std::int64_t k = 0; k < count; ++k) {
          const auto* const values = reinterpret_cast<const Vector*>(kept[k] + d + head * width);
#pragma GCC unroll 4
          for (std::int64_t i = 0; i < N; ++i) sums[i] += scores[k] * values[i];
        }
        std::memcpy(context, sums, sizeof(sums));
      } else {
        std::fill_n(context, width, Real{0});
        for (std::int64_t k = 0; k < count; ++k) {
          const Real* const values = kept[k] + d + head * width;
#pragma GCC ivdep
          for (std::int64_t i = 0; i < width; ++i) context[i] += scores[k] * values[i];
        }
      }
    }
  }

  static Real dot(const Real* a, const Real* b, std::int64_t size) {
    Real sum = 0;
    for (std::int64_t k = 0; k < size; ++k) sum += a[k] * b[k];
    return sum;
  }

  static void softmax(Real* scores, std::int64_t count) {
    Real highest = -std::numeric_limits<Real>::max(), total = 0;
    for (std::int64_t k = 0; k < count; ++k) highest = std::max(highest, scores[k]);
    for (std::int64_t k = 0; k < count; ++k) total += scores[k] = std::exp(scores[k] - highest);
    const Real share = Real{1} / total;
    for (std::int64_t k = 0; k < count; ++k) scores[k] *= share;
  }

  void log_softmax(Real* scores) const {
    Real highest = -std::numeric_limits<Real>::max(), total = 0;
    for (std::int64_t k = 0; k < v; ++k) highest = std::max(highest, scores[k]);
    for (std::int64_t k = 0; k < v; ++k) total += std::exp(scores[k] - highest);
    const Real away = highest + std::log(total);
    for (std::int64_t k = 0; k < v; ++k) scores[k] -= away;
  }

  // States x (B, d) with mean 0 and variance 1.
  const Real* normal(const Real* x, std::int64_t rows, Scratch<Real>& scratch) const {
    Real* const to = room(scratch.normal, rows * d);
    for (std::int64_t row = 0; row < rows; ++row, x += d) {
      Real sum = 0, squares = 0;
      for (std::int64_t k = 0; k < d; ++k) sum += x[k];
      const Real mean = sum / static_cast<Real>(d);
      for (std::int64_t k = 0; k < d; ++k) squares += (x[k] - mean) * (x[k] - mean);
      const Real scale = Real{1} / std::sqrt(squares / static_cast<Real>(d) + static_cast<Real>(EPSILON));
      for (std::int64_t k = 0; k < d; ++k) to[row * d + k] = (x[k] - mean) * scale;
    }
    return to;
  }

  // The sinusoids (d) of a place; nothing with relative positions.
  const Real* wave_at(std::int64_t place, Scratch<Real>& scratch) const {
    if (frequency.empty()) return nullptr;
    Real* const wave = room(scratch.wave, d);
    for (std::int64_t k = 0; k < d / 2; ++k) {
      const Real angle = static_cast<Real>(place) * frequency[static_cast<std::size_t>(k)];
      wave[k] = std::sin(angle), wave[d / 2 + k] = std::cos(angle);
    }
    return wave;
  }

  void embed(const Aligned<Real>& table, std::int64_t token, const Real* wave, Real* x) const {
    if (token < 0 || token >= v) throw UserError("a token outside the vocabulary");
    const Real* const from = table.data() + token * d;
    for (std::int64_t k = 0; k < d; ++k) x[k] = from[k] + (wave ? wave[k] : Real{0});
  }
};

}  // namespace

template <class Real>
std::unique_ptr<const Transformer<Real>> make_transformer(const Bundle& bundle) {
  return std::make_unique<OwnTransformer<Real>>(bundle);
}

template std::unique_ptr<const Transformer<float>> make_transformer<float>(const Bundle&);
#if VECTOR_BYTES < 64  // see instructions.cpp
template std::unique_ptr<const Transformer<double>> make_transformer<double>(const Bundle&);
#endif

}  // namespace compgen::INSTRUCTIONS

#include "end_instructions.h"
