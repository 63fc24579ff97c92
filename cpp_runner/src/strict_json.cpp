#include "strict_json.h"

#include "errors.h"

namespace compgen {
namespace {

constexpr int DEPTH = 64;

template <class Json>
void require_shallow(const Json& value, int left) {
  if (!value.is_structured()) return;
  if (left == 0) throw UserError("nested more than " + std::to_string(DEPTH) + " deep");
  for (const auto& part : value) require_shallow(part, left - 1);
}

template <class Json>
Json strict(const std::string& text) {
  if (text.compare(0, 3, "\xef\xbb\xbf") == 0) throw UserError("begins with a byte order mark");
  if (text.find('\0') != std::string::npos) throw UserError("not JSON: a byte of 0");  // the library ends there
  try {
    Json value = Json::parse(text);
    require_shallow(value, DEPTH);
    return value;
  } catch (const nlohmann::json::parse_error& error) {  // whose message holds the text, whatever bytes it is made of
    throw UserError("not JSON at byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::exception&) {
    throw UserError("not JSON: a number is too large");
  }
}

}  // namespace

nlohmann::json strict_json(const std::string& text) { return strict<nlohmann::json>(text); }

nlohmann::ordered_json strict_ordered_json(const std::string& text) { return strict<nlohmann::ordered_json>(text); }

}  // namespace compgen
