// JSON by the standard alone, and checked by a schema, so that this program accepts what compgen's Python accepts and
// nothing else: compgen/runtime/manifest.py has the same rules, and the schemas are made from its models.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace compgen {

// Throws UserError unless the text is UTF-8 without a byte order mark, of finite numbers, and at most 64 levels deep.
nlohmann::json strict_json(const std::string& text);

// Throws UserError, naming the field, unless a value is what the schema of that name describes: "manifest",
// "recurrent" or "golden".
void require_schema(const std::string& name, const nlohmann::json& value);

}  // namespace compgen
