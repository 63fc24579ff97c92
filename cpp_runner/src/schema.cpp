#include "schema.h"

#include <algorithm>

#include "errors.h"
#include "manifest_schema.h"

namespace compgen {
namespace {

using Json = nlohmann::json;

std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > 80 ? text.substr(0, 80) + "…" : text;
}

bool is_a(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  throw std::logic_error("the schema has a type " + type);
}

// Equal, and of one type: 1 is not 1.0, which Json takes for equal; nor true, which it does not.
bool same(const Json& value, const Json& wanted) {
  return value == wanted && value.is_number_float() == wanted.is_number_float();
}

// What JSON Schema says, as far as our models use it; a keyword beyond that is an error of ours.
class Schema {
 public:
  explicit Schema(const Json& root) : root_(root) {}

  // Why a value does not fit, beginning with the place; empty if it does.
  std::string problem(const Json& schema, const Json& value, const std::string& place) const {
    for (const auto& [keyword, rule] : schema.items()) {
      std::string found = problem(keyword, rule, schema, value, place);
      if (!found.empty()) return found;
    }
    return "";
  }

 private:
  std::string problem(const std::string& keyword, const Json& rule, const Json& schema, const Json& value,
                      const std::string& place) const {
    const auto wrong = [&](const std::string& expected) {
      return (place.empty() ? "" : place + ": ") + "expected " + expected + ", found " + shown(value);
    };
    if (keyword == "$defs" || keyword == "title" || keyword == "description" || keyword == "default") return "";
    if (keyword == "$ref") {
      return problem(root_.at(Json::json_pointer(rule.get<std::string>().substr(1))), value, place);
    }
    if (keyword == "type") return is_a(value, rule.get<std::string>()) ? "" : wrong(rule.get<std::string>());
    if (keyword == "const") return same(value, rule) ? "" : wrong(rule.dump());
    if (keyword == "enum") {
      const auto fits = [&](const Json& wanted) { return same(value, wanted); };
      return std::any_of(rule.begin(), rule.end(), fits) ? "" : wrong("one of " + rule.dump());
    }
    if (keyword == "anyOf") {
      const auto fits = [&](const Json& choice) { return problem(choice, value, place).empty(); };
      return std::any_of(rule.begin(), rule.end(), fits) ? "" : wrong("another value");
    }
    if (value.is_number()) return number_problem(keyword, rule, value, wrong);
    if (value.is_string()) return "";  // the one "pattern" is that of a hash, which is compared with a hash
    if (value.is_array()) return array_problem(keyword, rule, value, place, wrong);
    if (value.is_object()) return object_problem(keyword, rule, schema, value, place);
    return "";  // of another type than the keyword speaks of, which "type" refuses
  }

  template <class Wrong>
  static std::string number_problem(const std::string& keyword, const Json& rule, const Json& value, Wrong wrong) {
    // Numbers of 64 bits are exact in a long double's 64.
    const auto exact = [](const Json& number) {
      return number.is_number_unsigned() ? static_cast<long double>(number.get<std::uint64_t>())
             : number.is_number_integer() ? static_cast<long double>(number.get<std::int64_t>())
                                          : static_cast<long double>(number.get<double>());
    };
    const long double found = exact(value);
    if (keyword == "minimum") return found >= exact(rule) ? "" : wrong(rule.dump() + " or more");
    if (keyword == "maximum") return found <= exact(rule) ? "" : wrong(rule.dump() + " or less");
    if (keyword == "exclusiveMinimum") return found > exact(rule) ? "" : wrong("more than " + rule.dump());
    if (keyword == "exclusiveMaximum") return found < exact(rule) ? "" : wrong("less than " + rule.dump());
    return "";
  }

  template <class Wrong>
  std::string array_problem(const std::string& keyword, const Json& rule, const Json& value, const std::string& place,
                            Wrong wrong) const {
    if (keyword == "minItems") return value.size() >= rule.get<std::size_t>() ? "" : wrong("more entries");
    if (keyword == "maxItems") return value.size() <= rule.get<std::size_t>() ? "" : wrong("fewer entries");
    if (keyword != "items") return "";
    for (std::size_t at = 0; at < value.size(); ++at) {
      std::string found = problem(rule, value[at], joined(place, std::to_string(at)));
      if (!found.empty()) return found;
    }
    return "";
  }

  std::string object_problem(const std::string& keyword, const Json& rule, const Json& schema, const Json& value,
                             const std::string& place) const {
    if (keyword == "required") {
      for (const auto& name : rule) {
        if (!value.contains(name.get<std::string>())) return joined(place, name.get<std::string>()) + ": missing";
      }
    } else if (keyword == "properties") {
      for (const auto& [name, part] : rule.items()) {
        if (!value.contains(name)) continue;
        std::string found = problem(part, value.at(name), joined(place, name));
        if (!found.empty()) return found;
      }
    } else if (keyword == "additionalProperties" && rule != true) {
      for (const auto& [name, part] : value.items()) {
        if (schema.contains("properties") && schema.at("properties").contains(name)) continue;
        if (rule == false) return joined(place, shown(name)) + ": not a field of a bundle";
        std::string found = problem(rule, part, joined(place, shown(name)));
        if (!found.empty()) return found;
      }
    }
    return "";
  }

  static std::string joined(const std::string& place, const std::string& name) {
    return place.empty() ? name : place + "." + name;
  }

  const Json& root_;
};

}  // namespace

void require_schema(const std::string& name, const nlohmann::json& value) {
  static const Json& schemas = *new Json(Json::parse(MANIFEST_SCHEMA));  // stays: to destroy it takes memory
  const Json& schema = schemas.at(name);
  const std::string found = Schema(schema).problem(schema, value, "");
  if (!found.empty()) throw UserError(found);
}

}  // namespace compgen
