// JSON by the standard alone, so that this program accepts what compgen's Python accepts and nothing else:
// `strict_json` in compgen/runtime/manifest.py is the same.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace compgen {

// Throws UserError unless the text is UTF-8 without a byte order mark, of finite numbers, and at most 64 levels deep.
nlohmann::json strict_json(const std::string& text);

// The same, with the names in objects in their order.
nlohmann::ordered_json strict_ordered_json(const std::string& text);

}  // namespace compgen
