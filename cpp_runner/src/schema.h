// JSON checked by a schema: compgen/runtime/manifest.py has the same rules, and the schemas are made from its models.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace compgen {

// Throws UserError, naming the field, unless a value is what the schema of that name describes: "manifest",
// "recurrent", "transformer", "grammar" or "golden".
void require_schema(const std::string& name, const nlohmann::json& value);

}  // namespace compgen
