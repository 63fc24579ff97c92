#include "schema.h"

#include <algorithm>
#include <map>

#include "errors.h"
#include "manifest_schema.h"
#include "numbers.h"
#include "text.h"

namespace compgen {
namespace {

using Json = nlohmann::json;

// A bound, which is a whole number, as Python shows it: 1000000, also where the schema has 1000000.0.
std::string bound(const Json& number) {
  return number.is_number_float() ? std::to_string(static_cast<std::int64_t>(number.get<double>())) : number.dump();
}

// Texts as alternatives: 'a', 'b' or 'c'.
std::string alternatives(const Json& texts) {
  std::string found;
  for (std::size_t k = 0; k < texts.size(); ++k) {
    found += (k == 0 ? "" : k + 1 < texts.size() ? ", " : " or ") + represented_value(texts[k]);
  }
  return found;
}

// What pydantic calls a type of the schema.
std::string kind_of(const std::string& type, const Json& schema) {
  static const std::map<std::string, std::string> KINDS = {
      {"object", "dictionary"}, {"array", "list"}};  // others have the schema's name
  const auto found = KINDS.find(type);
  const std::string kind = found == KINDS.end() ? type : found->second;
  const bool is_model = type == "object" && schema.contains("properties");
  return kind + (is_model ? " or instance of " + schema.at("title").get<std::string>() : "");
}

// "1 item", "2 items"
std::string items(std::size_t count) { return std::to_string(count) + (count == 1 ? " item" : " items"); }

bool is_digest(const std::string& text) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::all_of(text.begin(), text.end(), is_hex);
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
      return place.empty() ? expected : place + ": " + expected + ", found " + beginning(represented_value(value), 80);
    };
    if (keyword == "$defs" || keyword == "title" || keyword == "description" || keyword == "default") return "";
    if (keyword == "$ref") {
      return problem(root_.at(Json::json_pointer(rule.get<std::string>().substr(1))), value, place);
    }
    if (keyword == "type") {
      const auto type = rule.get<std::string>();
      return is_a(value, type) ? "" : wrong("Input should be a valid " + kind_of(type, schema));
    }
    if (keyword == "const") return same(value, rule) ? "" : wrong("Input should be " + represented_value(rule));
    if (keyword == "enum") {
      const auto fits = [&](const Json& wanted) { return same(value, wanted); };
      return std::any_of(rule.begin(), rule.end(), fits) ? "" : wrong("Input should be " + alternatives(rule));
    }
    if (keyword == "anyOf") {  // the first choice is what is meant, and others stand in for it
      const auto fits = [&](const Json& choice) { return problem(choice, value, place).empty(); };
      return std::any_of(rule.begin(), rule.end(), fits) ? "" : problem(rule.at(0), value, place);
    }
    if (value.is_number()) return number_problem(keyword, rule, value, wrong);
    if (value.is_string()) {  // the one "pattern" is that of a digest
      const bool fits = keyword != "pattern" || is_digest(value.get<std::string>());
      return fits ? "" : wrong("String should match pattern " + represented_value(rule));
    }
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
    if (keyword == "minimum") return found >= exact(rule) ? "" : wrong("Input should be greater than or equal to " + bound(rule));
    if (keyword == "maximum") return found <= exact(rule) ? "" : wrong("Input should be less than or equal to " + bound(rule));
    if (keyword == "exclusiveMinimum") return found > exact(rule) ? "" : wrong("Input should be greater than " + bound(rule));
    if (keyword == "exclusiveMaximum") return found < exact(rule) ? "" : wrong("Input should be less than " + bound(rule));
    return "";
  }

  template <class Wrong>
  std::string array_problem(const std::string& keyword, const Json& rule, const Json& value, const std::string& place,
                            Wrong wrong) const {
    const auto size = [&](const char* least) {
      return wrong(std::string("List should have at ") + least + " " + items(rule.get<std::size_t>()) +
                   " after validation, not " + std::to_string(value.size()));
    };
    if (keyword == "minItems") return value.size() >= rule.get<std::size_t>() ? "" : size("least");
    if (keyword == "maxItems") return value.size() <= rule.get<std::size_t>() ? "" : size("most");
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
        if (!value.contains(name.get<std::string>())) return joined(place, name.get<std::string>()) + ": Field required";
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
        if (rule == false) {
          const std::string found = beginning(represented_value(part), 80);
          return joined(place, name) + ": Extra inputs are not permitted, found " + found;
        }
        std::string found = problem(rule, part, joined(place, name));
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

void require_schema(const std::string& name, const nlohmann::json& value, const std::string& place) {
  static const Json& schemas = *new Json(Json::parse(MANIFEST_SCHEMA));  // stays: to destroy it takes memory
  const Json& schema = schemas.at(name);
  const std::string found = Schema(schema).problem(schema, value, place);
  if (!found.empty()) throw UserError(found);
}

}  // namespace compgen
