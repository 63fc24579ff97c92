// JSON checked by a schema: compgen/runtime/manifest.py has the same rules, and the schemas are made from its models.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace compgen {

// Throws UserError, naming the field in Python's words, unless a value is what the schema of that name describes: "manifest",
// "recurrent", "transformer", "grammar" or "golden". `place` is where the value stands, if not by itself.
void require_schema(const std::string& name, const nlohmann::json& value, const std::string& place = "");

}  // namespace compgen
