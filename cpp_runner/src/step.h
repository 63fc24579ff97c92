// One step of the decoder, written for one thread and a processor's vector registers: what step.onnx computes
// (compgen/models/decoding.py), without the passes over memory between its 350 operations and without prototypes' padding.
#pragma once

#include <memory>

#include "backend.h"

namespace compgen {

template <class Real>
class Step {
 public:
  virtual ~Step() = default;
  // As Backend::step. Threads may call it at the same time.
  virtual void operator()(Batch<Real>& batch) const = 0;
};

// The step of a bundle in the chosen instruction set. Throws UserError: the bundle has no weights for it, or not those of
// its sizes.
template <class Real>
std::unique_ptr<const Step<Real>> make_step(const Bundle& bundle);

}  // namespace compgen
