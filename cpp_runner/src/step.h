// One step of the decoder, written for one thread and a processor's vector registers: what step.onnx computes
// (compgen/models/decoding.py), without the passes over memory between its 350 operations and without prototypes' padding.
#pragma once

#include <memory>

#include "backend.h"

namespace compgen {

constexpr const char* STEP_WEIGHTS = "step.safetensors";

template <class Real>
class Step {
 public:
  // Throws UserError: the bundle has no weights for it, or not those of its sizes.
  explicit Step(const Bundle& bundle);
  ~Step();

  // As Backend::step. Threads may call it at the same time.
  void operator()(Batch<Real>& batch) const;

 private:
  struct Weights;
  std::unique_ptr<const Weights> weights_;
};

}  // namespace compgen
