// A run of a generator: draws until it is done, exhausted or interrupted; see compgen/trained/run.py.
#pragma once

#include "bundle.h"
#include "options.h"

namespace compgen {

// Draws, filters and writes samples, and the record beside them; the exit code. Throws UserError.
int run(const Options& options, const Bundle& bundle);

}  // namespace compgen
