// --direct: what a generator answers, without a predictor.
#pragma once

#include "bundle.h"
#include "options.h"

namespace compgen {

// Throws UserError: the bundle has no generator, or an option has no use here.
void check_direct(const Options& options, const Bundle& bundle);

// Writes a grammar's or a network's answers, in the order of the sources; returns the exit code. Throws UserError.
int run_direct(const Options& options, const Bundle& bundle);

}  // namespace compgen
