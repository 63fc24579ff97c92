#include "backend.h"
#include "step.h"

namespace compgen {
namespace {

template <class Real>
class OwnBackend final : public Backend<Real> {
 public:
  explicit OwnBackend(const Bundle& bundle) : library_(make_backend<Real>(bundle, false)), step_(make_step<Real>(bundle)) {}

  Encoded<Real> encode(const std::vector<std::int64_t>& tokens, std::int64_t count, std::int64_t width) override {
    return library_->encode(tokens, count, width);
  }
  void start(const Aligned<Real>& final, std::int64_t rows, Aligned<Real>& hidden, Aligned<Real>& cell) override {
    library_->start(final, rows, hidden, cell);
  }
  void step(Batch<Real>& batch) override { (*step_)(batch); }

 private:
  std::unique_ptr<Backend<Real>> library_;
  std::unique_ptr<const Step<Real>> step_;
};

}  // namespace

template <class Real>
std::unique_ptr<Backend<Real>> make_own_backend(const Bundle& bundle) {
  return std::make_unique<OwnBackend<Real>>(bundle);
}

template std::unique_ptr<Backend<float>> make_own_backend<float>(const Bundle&);
template std::unique_ptr<Backend<double>> make_own_backend<double>(const Bundle&);

}  // namespace compgen
