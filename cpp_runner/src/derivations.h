// Samples of a grammar (compgen/csl/sampling.py): derivations drawn from the root down, level by level. A node's random
// numbers have its sample, the attempt and its place as their address, so it does not matter what else is drawn.
#pragma once

#include <memory>

#include "sampler.h"

namespace compgen {

// The generator that a bundle's grammar is. Throws UserError: rules, scores or target rules are damaged or do not fit
// together. It has one temperature, and says so when it draws, as it does if no derivation ends within the depth.
std::unique_ptr<Generator> make_grammar(const Bundle& bundle);

}  // namespace compgen
