#include <algorithm>

#include "decoder.h"
#include "memories.h"

namespace compgen {
namespace {

// Begun by what is derived from it.
template <class Real>
class RecurrentDecoder : public Decoder {
 public:
  RecurrentDecoder(const Bundle& bundle, Backend<Real>& backend) : bundle_(bundle), backend_(backend) {}

  void advance() override {
    batch_.token = token;
    std::fill(batch_.position.begin(), batch_.position.end(), step_++);
    backend_.step(batch_);
    batch_.advance();
    const auto v = static_cast<std::int64_t>(bundle_.vocabulary.size());
    token = batch_.token;
    if (std::any_of(token.begin(), token.end(), [v](std::int64_t one) { return one < 0 || one >= v; })) {
      throw UserError(bundle_.folder.string() + ": the network gives a token outside the vocabulary");
    }
    take(batch_.log_probs, bundle_);
  }

  void keep(const std::vector<std::int64_t>& rows) override {
    batch_.keep(rows);
    token = gathered(token, 1, rows);
  }

 protected:
  // Begins rows that have their memories, from the last states (B, n, D) of these.
  void begin(const Aligned<Real>& final, std::int64_t half) {
    backend_.start(final, batch_.rows, batch_.hidden, batch_.cell);
    std::fill(batch_.half.begin(), batch_.half.end(), half);
    token.assign(static_cast<std::size_t>(batch_.rows), BOS);
    step_ = 0;
  }

  const Bundle& bundle_;
  Backend<Real>& backend_;
  Batch<Real> batch_;

 private:
  std::int64_t step_ = 0;
};

// A predictor's, whose one memory is its source.
template <class Real>
class SourceDecoder final : public RecurrentDecoder<Real> {
 public:
  using RecurrentDecoder<Real>::RecurrentDecoder;

  void open(const std::vector<std::int64_t>& sources, std::int64_t rows, std::int64_t width) override {
    auto& batch = this->batch_;
    batch = Batch<Real>(this->bundle_, rows, width);
    batch.rows = rows;
    tokens_.assign(sources.begin(), sources.end());
    encoded_ = this->backend_.encode(sources, rows, width);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t first = row * width, keys = first * this->bundle_.attention;
      const std::int32_t* const from = tokens_.data() + first;
      batch.memories[static_cast<std::size_t>(row)] = {encoded_.keys.data() + keys, encoded_.values.data() + keys,
                                                       from, std::find(from, from + width, PAD) - from};
    }
    this->begin(encoded_.final, 1);
  }

 private:
  Tokens tokens_;  // (B, T) of the sources
  Encoded<Real> encoded_;
};

// A generator's, whose memories are its prototypes. The latent vector of a network that has one is zero.
template <class Real>
class PrototypeDecoder final : public RecurrentDecoder<Real> {
 public:
  PrototypeDecoder(const Bundle& bundle, Backend<Real>& backend, Memories<Real>& memories)
      : RecurrentDecoder<Real>(bundle, backend), memories_(memories) {}

  void open(const std::vector<std::int64_t>& chosen, std::int64_t rows, std::int64_t n) override {
    const auto& bundle = this->bundle_;
    memories_.prepare(chosen);
    std::size_t longest = 0;
    for (const auto one : chosen) {
      longest = std::max(longest, bundle.pool.sequences()[static_cast<std::size_t>(one)].size());
    }
    auto& batch = this->batch_;
    batch = Batch<Real>(bundle, rows, static_cast<std::int64_t>(longest));
    batch.rows = rows;
    Aligned<Real> final(static_cast<std::size_t>(rows * n * bundle.final_size));
    for (std::int64_t row = 0; row < rows; ++row) {
      memories_.fetch(chosen.data() + row * n, batch.memories.data() + row * n,
                      final.data() + row * n * bundle.final_size);
    }
    this->begin(final, 0);
  }

 private:
  Memories<Real>& memories_;
};

template <class Real>
class RecurrentPredictor final : public Predictor {
 public:
  RecurrentPredictor(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend)
      : bundle_(bundle), backend_(std::move(backend)) {}
  std::unique_ptr<Decoder> decoder() override { return std::make_unique<SourceDecoder<Real>>(bundle_, *backend_); }

 private:
  const Bundle& bundle_;
  std::unique_ptr<Backend<Real>> backend_;
};

template <class Real>
class PrototypeWriter final : public Predictor {
 public:
  PrototypeWriter(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend)
      : bundle_(bundle), backend_(std::move(backend)), memories_(bundle, *backend_, bundle.pool.longest_of_all()) {}
  std::unique_ptr<Decoder> decoder() override {
    return std::make_unique<PrototypeDecoder<Real>>(bundle_, *backend_, memories_);
  }

 private:
  const Bundle& bundle_;
  std::unique_ptr<Backend<Real>> backend_;
  Memories<Real> memories_;
};

}  // namespace

template <class Real>
std::unique_ptr<Predictor> make_predictor(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend) {
  return std::make_unique<RecurrentPredictor<Real>>(bundle, std::move(backend));
}

template <class Real>
std::unique_ptr<Predictor> make_writer(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend) {
  return std::make_unique<PrototypeWriter<Real>>(bundle, std::move(backend));
}

template std::unique_ptr<Predictor> make_predictor<float>(const Bundle&, std::unique_ptr<Backend<float>>);
template std::unique_ptr<Predictor> make_predictor<double>(const Bundle&, std::unique_ptr<Backend<double>>);
template std::unique_ptr<Predictor> make_writer<float>(const Bundle&, std::unique_ptr<Backend<float>>);
template std::unique_ptr<Predictor> make_writer<double>(const Bundle&, std::unique_ptr<Backend<double>>);

}  // namespace compgen
