// Transformers by our own step.
#include "decoder.h"
#include "transformer.h"

namespace compgen {
namespace {

template <class Real>
class OwnTransformerDecoder final : public Decoder {
 public:
  OwnTransformerDecoder(const Bundle& bundle, const Transformer<Real>& network) : bundle_(bundle), network_(network) {}

  void open(const std::vector<std::int64_t>& sources, std::int64_t rows, std::int64_t width) override {
    network_.open(sources, rows, width, writing_);
    token = writing_.token;
  }

  void advance() override {
    writing_.token = token;
    const std::int64_t position = writing_.step;
    network_.step(writing_);
    take(writing_.log_probs, bundle_);
    choose(position);
  }

  void keep(const std::vector<std::int64_t>& rows) override {
    writing_.keep(rows);
    token = gathered(token, 1, rows);
  }

 private:
  const Bundle& bundle_;
  const Transformer<Real>& network_;
  Writing<Real> writing_;
};

template <class Real>
class OwnTransformerPredictor final : public Predictor {
 public:
  explicit OwnTransformerPredictor(const Bundle& bundle)
      : bundle_(bundle), network_(make_transformer_step<Real>(bundle)) {}
  std::unique_ptr<Decoder> decoder() override {
    return std::make_unique<OwnTransformerDecoder<Real>>(bundle_, *network_);
  }

 private:
  const Bundle& bundle_;
  std::unique_ptr<const Transformer<Real>> network_;
};

}  // namespace

std::unique_ptr<Predictor> make_own_transformer(const Bundle& bundle) {
  if (bundle.dtype == "float64") return std::make_unique<OwnTransformerPredictor<double>>(bundle);
  return std::make_unique<OwnTransformerPredictor<float>>(bundle);
}

}  // namespace compgen
