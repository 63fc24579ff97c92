// Which instruction set our decoding step uses: it is compiled for several (CMakeLists.txt has the list), and the
// processor decides when the program runs.
#pragma once

#include <string>

namespace compgen {

// Whether there is a step for the set, and this processor has it.
bool has_instructions(const std::string& name);

// The best set of those, or the one that the environment variable COMPGEN_INSTRUCTIONS names. Throws UserError: that is
// none of them.
std::string chosen_instructions();

}  // namespace compgen
