#include <algorithm>
#include <cmath>

#include "decoder.h"
#include "errors.h"

namespace compgen {
namespace {

template <class Real>
class RecurrentDecoder final : public Decoder {
 public:
  RecurrentDecoder(const Bundle& bundle, Backend<Real>& backend) : bundle_(bundle), backend_(backend) {}

  void open(const std::vector<std::int64_t>& sources, std::int64_t rows, std::int64_t width) override {
    batch_ = Batch<Real>(bundle_, rows, width);
    batch_.rows = rows;
    batch_.memory_tokens = sources;
    auto encoded = backend_.encode(sources, rows, width);
    batch_.keys = std::move(encoded.keys), batch_.values = std::move(encoded.values);
    backend_.start(encoded.final, rows, batch_.hidden, batch_.cell);
    std::fill(batch_.half.begin(), batch_.half.end(), 1);
    token.assign(static_cast<std::size_t>(rows), BOS);
    step_ = 0;
  }

  void advance() override {
    batch_.token = token;
    std::fill(batch_.position.begin(), batch_.position.end(), step_++);
    backend_.step(batch_);
    batch_.advance();
    const auto v = static_cast<std::int64_t>(bundle_.vocabulary.size());
    token = batch_.token;
    if (std::any_of(token.begin(), token.end(), [v](std::int64_t one) { return one < 0 || one >= v; })) {
      damaged("a token outside the vocabulary");
    }
    log_probs.assign(batch_.log_probs.begin(), batch_.log_probs.end());
    if (!std::all_of(log_probs.begin(), log_probs.end(), [](double one) { return std::isfinite(one); })) {
      damaged("a probability that is no number");
    }
  }

  void keep(const std::vector<std::int64_t>& rows) override {
    batch_.keep(rows);
    token = gathered(token.data(), 1, rows);
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    throw UserError(bundle_.folder.string() + ": the network gives " + what);
  }

  const Bundle& bundle_;
  Backend<Real>& backend_;
  Batch<Real> batch_;
  std::int64_t step_ = 0;
};

template <class Real>
class RecurrentPredictor final : public Predictor {
 public:
  RecurrentPredictor(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend)
      : bundle_(bundle), backend_(std::move(backend)) {}
  std::unique_ptr<Decoder> decoder() override { return std::make_unique<RecurrentDecoder<Real>>(bundle_, *backend_); }

 private:
  const Bundle& bundle_;
  std::unique_ptr<Backend<Real>> backend_;
};

}  // namespace

template <class Real>
std::unique_ptr<Predictor> make_predictor(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend) {
  return std::make_unique<RecurrentPredictor<Real>>(bundle, std::move(backend));
}

template std::unique_ptr<Predictor> make_predictor<float>(const Bundle&, std::unique_ptr<Backend<float>>);
template std::unique_ptr<Predictor> make_predictor<double>(const Bundle&, std::unique_ptr<Backend<double>>);

}  // namespace compgen
