#include "sealed.h"

#include <cstdint>
#include <map>
#include <string_view>

#include "errors.h"

namespace compgen {
namespace {

enum Wire : std::uint64_t { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

// What to do with a field: pass over it (a string or number, or a message whose content no runtime follows anywhere),
// look into the message in it, or apply a rule of its own.
enum class Rule { SKIP, GRAPH, NODE, ATTRIBUTE, TENSOR, OPERATOR, DOMAIN_NAME, LOCATION };

struct Message {
  const char* name;
  std::map<std::uint64_t, Rule> fields;
};

const Message MODEL = {"model",
                       {{1, Rule::SKIP}, {2, Rule::SKIP}, {3, Rule::SKIP}, {4, Rule::SKIP}, {5, Rule::SKIP},
                        {6, Rule::SKIP}, {7, Rule::GRAPH}, {8, Rule::SKIP}}};
const Message GRAPH = {"graph",
                       {{1, Rule::NODE}, {2, Rule::SKIP}, {5, Rule::TENSOR}, {10, Rule::SKIP}, {11, Rule::SKIP},
                        {12, Rule::SKIP}, {13, Rule::SKIP}, {16, Rule::SKIP}}};
const Message NODE = {"node",
                      {{1, Rule::SKIP}, {2, Rule::SKIP}, {3, Rule::SKIP}, {4, Rule::OPERATOR}, {5, Rule::ATTRIBUTE},
                       {6, Rule::SKIP}, {7, Rule::DOMAIN_NAME}, {9, Rule::SKIP}}};
const Message ATTRIBUTE = {"attribute",
                           {{1, Rule::SKIP}, {2, Rule::SKIP}, {3, Rule::SKIP}, {4, Rule::SKIP}, {5, Rule::TENSOR},
                            {6, Rule::GRAPH}, {7, Rule::SKIP}, {8, Rule::SKIP}, {9, Rule::SKIP}, {10, Rule::TENSOR},
                            {11, Rule::GRAPH}, {13, Rule::SKIP}, {20, Rule::SKIP}}};
const Message TENSOR = {"tensor",
                        {{1, Rule::SKIP}, {2, Rule::SKIP}, {4, Rule::SKIP}, {5, Rule::SKIP}, {6, Rule::SKIP},
                         {7, Rule::SKIP}, {8, Rule::SKIP}, {9, Rule::SKIP}, {10, Rule::SKIP}, {11, Rule::SKIP},
                         {12, Rule::SKIP}, {14, Rule::LOCATION}, {16, Rule::SKIP}}};
const std::map<std::pair<std::string, std::uint64_t>, const char*> NAMES = {
    {{"model", 14}, "metadata"},           {{"model", 20}, "training information"},
    {{"model", 25}, "functions"},          {{"graph", 15}, "sparse initializers"},
    {{"attribute", 22}, "sparse tensors"}, {{"attribute", 23}, "sparse tensors"},
    {{"tensor", 13}, "external data"}};
constexpr int NESTED = 32;  // messages within one another; ours are 9 deep

[[noreturn]] void refuse(const std::string& found) {
  throw UserError("holds " + found + ", which a bundle's graphs do not have");
}

[[noreturn]] void no_graph() { throw UserError("not an ONNX graph"); }

// A number in as few bytes as it needs, or in ten where it is negative; `data` then begins after it.
std::uint64_t varint(std::string_view& data) {
  std::uint64_t value = 0;
  for (unsigned place = 0; place < 10 && place < data.size(); ++place) {
    const auto byte = static_cast<std::uint8_t>(data[place]);
    if (place == 9 && byte > 1) no_graph();
    value |= static_cast<std::uint64_t>(byte & 127U) << (7U * place);
    if (byte >= 128) continue;
    if (place > 0 && byte == 0) no_graph();
    data.remove_prefix(place + 1);
    return value;
  }
  no_graph();
}

const Message* message_of(Rule rule) {
  switch (rule) {
    case Rule::GRAPH: return &GRAPH;
    case Rule::NODE: return &NODE;
    case Rule::ATTRIBUTE: return &ATTRIBUTE;
    case Rule::TENSOR: return &TENSOR;
    default: return nullptr;
  }
}

void walk(const Message& message, std::string_view data, int left) {
  if (left == 0) throw UserError("messages more than " + std::to_string(NESTED) + " deep");
  std::string_view op_type, domain;
  while (!data.empty()) {
    const std::uint64_t tag = varint(data), field = tag >> 3U, wire = tag & 7U;
    std::uint64_t number = 0;
    std::string_view bytes;
    if (wire == VARINT) {
      number = varint(data);
    } else if (wire == BYTES) {
      const std::uint64_t size = varint(data);
      if (size > data.size()) throw UserError("cut short");
      bytes = data.substr(0, static_cast<std::size_t>(size));
      data.remove_prefix(bytes.size());
    } else if (wire == FIXED32 || wire == FIXED64) {
      const std::size_t size = wire == FIXED32 ? 4 : 8;
      if (size > data.size()) no_graph();
      data.remove_prefix(size);
    } else {
      no_graph();
    }
    if (field == 0) no_graph();
    const auto found = message.fields.find(field);
    if (found == message.fields.end()) {
      const auto name = NAMES.find({message.name, field});
      refuse(name != NAMES.end() ? name->second : "field " + std::to_string(field) + " of a " + message.name);
    }
    const Rule rule = found->second;
    if (rule == Rule::SKIP) continue;
    if (rule == Rule::LOCATION) {
      if (wire != VARINT || number != 0) refuse("external data");
      continue;
    }
    if (wire != BYTES) throw UserError("field " + std::to_string(field) + " of a " + message.name + " is no message");
    if (rule == Rule::OPERATOR) op_type = bytes;
    else if (rule == Rule::DOMAIN_NAME) domain = bytes;
    else walk(*message_of(rule), bytes, left - 1);
  }
  // The one operator beyond the standard: products in int8.
  if (!domain.empty() && !(domain == "com.microsoft" && op_type == "MatMulIntegerToFloat")) {
    refuse("the operator '" + std::string(domain.substr(0, 40)) + "." + std::string(op_type.substr(0, 40)) + "'");
  }
}

}  // namespace

void require_sealed(const std::string& graph) {
  if (graph.size() >= 8 && graph.compare(4, 4, "ORTM") == 0) {
    throw UserError("a graph in ONNX Runtime's own format, expected ONNX");
  }
  walk(MODEL, graph, NESTED);
}

}  // namespace compgen
