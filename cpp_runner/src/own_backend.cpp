#include "backend.h"
#include "errors.h"
#include "instructions.h"
#include "open.h"
#include "step.h"

namespace compgen {
namespace {

template <class Real>
std::unique_ptr<const Step<Real>> step_of(const Bundle& bundle) {
  const std::string instructions = chosen_instructions();
  try {
    return make_step<Real>(bundle, instructions);
  } catch (const UserError& error) {
    throw UserError((bundle.folder / STEP_WEIGHTS).string() + ": " + error.what());
  }
}

template <class Real>
class OwnBackend final : public Backend<Real> {
 public:
  explicit OwnBackend(const Bundle& bundle) : library_(make_backend<Real>(bundle, false)), step_(step_of<Real>(bundle)) {}

  Encoded<Real> encode(const std::vector<std::int64_t>& tokens, std::int64_t count, std::int64_t width) override {
    return library_->encode(tokens, count, width);
  }
  void start(const std::vector<Real>& final, std::int64_t rows, std::vector<Real>& hidden,
             std::vector<Real>& cell) override {
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

bool has_own_step(const Bundle& bundle) { return bundle.architecture == "recurrent" && bundle.has(STEP_WEIGHTS); }

void check_own_step(const Bundle& bundle) {
  if (!has_own_step(bundle)) return;
  if (bundle.dtype == "float64") step_of<double>(bundle);
  else step_of<float>(bundle);
}

template std::unique_ptr<Backend<float>> make_own_backend<float>(const Bundle&);
template std::unique_ptr<Backend<double>> make_own_backend<double>(const Bundle&);

}  // namespace compgen
