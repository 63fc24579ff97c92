// Recurrent models, which are bundles: another program runs their networks, `compgen-score` of cpp_runner.
#pragma once

#include <memory>
#include <string>

#include "models.h"

namespace compgen {

// Whether a model is a recurrent one: a checkpoint, or a bundle, which is a folder.
bool is_recurrent(const std::string& path);

// Throws UserError: it is a checkpoint, there is no such program, or the bundle is no language model.
std::unique_ptr<Model> open_recurrent(const std::string& path, std::size_t threads);

// The words of a bundle that is open. Throws UserError: they cannot be read any more.
Vocabulary words_of_bundle(const std::string& path);

}  // namespace compgen
