// A look at an ONNX graph before ONNX Runtime sees it: it must hold all its numbers itself, and no more than graphs do.
// See compgen/runtime/sealed.py, which has the same tables.
#pragma once

#include <string>

namespace compgen {

// Throws UserError: external data, or anything else that a bundle's graphs do not have.
void require_sealed(const std::string& graph);

}  // namespace compgen
