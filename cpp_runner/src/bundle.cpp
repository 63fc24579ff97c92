#include "bundle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "errors.h"
#include "numbers.h"
#include "schema.h"
#include "sealed.h"
#include "sha256.h"
#include "strict_json.h"
#include "text.h"

namespace compgen {
namespace {

using Json = nlohmann::json;

constexpr std::size_t LARGEST_MANIFEST = 1 << 24;  // bytes

// What the bundle of an architecture holds; see LAYOUTS in compgen/runtime/manifest.py.
struct Layout {
  std::set<std::string> kinds;
  std::vector<std::string> files;  // of every such bundle
  std::set<std::string> graphs;    // that it may have
};
const std::map<std::string, Layout> LAYOUTS = {
    {"recurrent",
     {{"generator", "predictor"},
      {"vocabulary.json", "step.onnx", "sampler.onnx"},
      {"step.onnx", "sampler.onnx", "start.onnx", "encoder.onnx"}}},
    {"transformer", {{"predictor"}, {"vocabulary.json", "step.onnx"}, {"step.onnx", "encoder.onnx"}}},
    {"grammar", {{"generator"}, {"vocabulary.json", RULES, TARGET_RULES, SCORES}, {}}},
};

// The content of a plain file, no link, of which no more than `most` + 1 bytes are read; nothing if it is something else.
std::optional<std::string> read_within(const std::filesystem::path& path, std::size_t most) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 && errno == EACCES) throw UserError(std::string("cannot be read: ") + std::strerror(errno));
  if (descriptor < 0) return std::nullopt;
  std::string content;
  struct stat found = {};
  bool whole = fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode);
  while (whole && content.size() <= most) {
    const std::size_t before = content.size();
    content.resize(before + std::min<std::size_t>(most + 1 - before, 1 << 20));
    const ssize_t got = read(descriptor, content.data() + before, content.size() - before);
    content.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    whole = got >= 0;
    if (got <= 0) break;
  }
  close(descriptor);
  return whole ? std::optional<std::string>(std::move(content)) : std::nullopt;
}

Network network_of(const Json& config) {
  Network network;
  network.feed = config.at("feed").get<bool>();
  network.copying = config.at("copying").get<bool>();
  network.tanh = config.at("activation") == "tanh";
  network.positions = config.at("positions").get<std::int64_t>();
  return network;
}

// Whether a name can only be that of a file in the bundle's own folder.
bool plain(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 100 && name[0] != '.' && std::all_of(name.begin(), name.end(), allowed);
}

// The content of a file that the manifest lists. Throws UserError: it is another one.
std::string checked(const std::filesystem::path& path, const Json& entry) {
  const auto expected = entry.at("size").get<std::int64_t>();
  auto content = read_within(path, static_cast<std::size_t>(expected));
  if (!content) throw UserError("missing or a link, expected a plain file of " + with_commas(expected) + " bytes");
  if (static_cast<std::int64_t>(content->size()) != expected) {
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
    throw UserError(with_commas(size) + " bytes, expected " + with_commas(expected) + ": cut short or altered");
  }
  const std::string found = sha256(*content), wanted = entry.at("sha256").get<std::string>();
  if (found == wanted) return std::move(*content);
  throw UserError("altered: SHA-256 " + found.substr(0, 16) + "…, expected " + wanted.substr(0, 16) + "…");
}

// A file's JSON. Throws UserError: it is none.
Json json_of(const std::string& content) {
  try {
    return strict_json(content);
  } catch (const UserError& error) {
    throw UserError("cannot be read: " + std::string(error.what()));
  }
}

// Tokens in quotes, with spaces between them.
std::string listed(const std::vector<std::string>& tokens) {
  std::string text;
  for (const auto& token : tokens) text += (text.empty() ? "" : " ") + represented(token);
  return text;
}

std::vector<std::string> tokens_of(const std::string& content) {
  const Json list = json_of(content);
  const auto is_string = [](const Json& token) { return token.is_string(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_string)) {
    throw UserError("expected a list of strings");
  }
  auto tokens = list.get<std::vector<std::string>>();
  const std::vector<std::string> specials = {"<pad>", "<s>", "</s>", "→", "<unk>"};
  const auto count = static_cast<std::ptrdiff_t>(std::min(tokens.size(), specials.size()));
  const std::vector<std::string> first(tokens.begin(), tokens.begin() + count);
  if (first != specials) {
    throw UserError("a vocabulary begins with " + listed(specials) + ": found " + (first.empty() ? "nothing" : listed(first)));
  }
  std::map<std::string, std::size_t> last;
  for (std::size_t id = 0; id < tokens.size(); ++id) last[tokens[id]] = id;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (last[tokens[id]] == id) continue;
    throw UserError("a vocabulary holds each token once: found " + represented(tokens[id]) + " more than once");
  }
  return tokens;
}

// Throws UserError, with a name for it, for a temperature that `warm` refuses.
void require_warm(double temperature, const std::string& name) {
  if (temperature == 0 || (temperature >= 1e-3 && temperature <= 1e3)) return;
  throw UserError(name + ": expected 0 (greedy), or from 0.001 to 1000");
}

std::array<double, 2> temperature_of(const Json& sampling) {
  const Json found = sampling.value("temperature", Json());
  if (!found.is_array() || found.size() != 2 || !found[0].is_number() || !found[1].is_number()) {
    throw UserError("sampling.temperature " + beginning(represented_value(found), 60) + ", expected two numbers");
  }
  for (const auto& value : found) require_warm(value.get<double>(), "sampling.temperature " + represented_value(value));
  return found.get<std::array<double, 2>>();
}

// The rules of `GrammarSettings` that no schema can say are here.
GrammarSettings grammar_of(const Json& sampling) {
  try {
    require_schema("grammar", sampling);
  } catch (const UserError& error) {
    throw UserError("settings of a grammar: " + std::string(error.what()));
  }
  GrammarSettings settings;
  settings.least = sampling.at("least").get<std::int64_t>(), settings.most = sampling.at("most").get<std::int64_t>();
  settings.longest = sampling.at("longest").get<std::int64_t>();
  settings.bias = sampling.at("bias").get<double>(), settings.biased = sampling.at("biased").get<std::int64_t>();
  settings.unit_limit = sampling.at("unit_limit").get<std::int64_t>();
  settings.copying = sampling.at("copying").get<bool>();
  if (sampling.at("temperature")[0] != sampling.at("temperature")[1]) {
    throw UserError("settings of a grammar: two temperatures, expected twice the same");
  }
  if (settings.least > settings.most) {
    throw UserError("settings of a grammar: depth: found at least " + std::to_string(settings.least) + " and at most " +
                    std::to_string(settings.most) + ", expected least <= most");
  }
  return settings;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The last size in the shape of an output of the encoder, which there is; 0 if it has no such output, or of no fixed size.
std::int64_t last_size(const Json& graphs, const std::string& output) {
  for (const auto& tensor : graphs.at("encoder.onnx").at("outputs")) {
    if (tensor.at("name") != output) continue;
    const Json& shape = tensor.at("shape");
    return !shape.empty() && shape.back().is_number() ? shape.back().get<std::int64_t>() : 0;
  }
  return 0;
}

// The rules of `Manifest.problem` in compgen/runtime/manifest.py.
void require_consistent(const Json& manifest, const std::string& architecture, const Layout& layout) {
  const auto kind = manifest.at("kind").get<std::string>();
  const auto prototypes = manifest.at("prototypes").get<std::int64_t>();
  const Json shape = manifest.value("shape", Json());
  if (shape.is_null() == (architecture == "recurrent")) {
    throw UserError("a " + architecture + (shape.is_null() ? " without a" : " with a") + " shape");
  }
  if (layout.kinds.count(kind) == 0) throw UserError("a " + kind + " with a " + architecture);
  const std::int64_t wanted = kind == "predictor" ? 1 : layout.graphs.count("encoder.onnx") ? prototypes : 0;
  if (prototypes != wanted) {
    throw UserError("a " + kind + " with a " + architecture + " of " + std::to_string(prototypes) +
                    " memories, expected " + std::to_string(wanted));
  }
  if (shape.is_null()) return;
  const Json latent = shape.value("latent", Json());
  if (!latent.is_null() && latent.at("start").get<std::int64_t>() + latent.at("size").get<std::int64_t>() >
                               shape.at("output").get<std::int64_t>()) {
    throw UserError("a latent vector beyond the " + shape.at("output").dump() + " numbers of fed");
  }
  require_schema("recurrent", manifest.at("config").value("network", Json()), "config.network");
}

// Those of `Manifest.graph_problem`.
void require_whole(const Json& manifest, const Layout& layout) {
  const auto prototypes = manifest.at("prototypes").get<std::int64_t>();
  const Json& files = manifest.at("files");
  const Json& graphs = manifest.at("graphs");
  const auto kind = manifest.at("kind").get<std::string>();
  std::vector<std::string> required = layout.files;
  std::set<std::string> known = layout.graphs, named;
  for (const auto& [name, graph] : graphs.items()) required.push_back(name), named.insert(name);
  if (prototypes > 0 && known.count("encoder.onnx") > 0) required.push_back("encoder.onnx");
  if (prototypes == 0) known.erase("encoder.onnx");
  if (kind == "generator") required.push_back("pool.safetensors");
  for (const auto& name : required) {
    if (!files.contains(name)) throw UserError("lists no " + name + ", expected in a " + kind + "'s bundle");
  }
  for (const auto& [name, entry] : files.items()) {
    if (!plain(name)) {
      throw UserError("file name " + beginning(represented(name), 80) + ", expected a plain name inside the bundle");
    }
    if (ends_with(name, ".onnx")) named.insert(name);
  }
  for (const auto& name : named) {
    if (ends_with(name, ".onnx") && known.count(name) > 0 && graphs.contains(name)) continue;
    throw UserError("graphs and files disagree on " + beginning(represented(name), 80));
  }
  const bool reads = prototypes > 0 && !manifest.value("shape", Json()).is_null();
  if (reads && (last_size(graphs, "keys") == 0 || last_size(graphs, "final") == 0)) {
    throw UserError("graphs: encoder.onnx has no outputs keys and final of a fixed size");
  }
}

// Throws UserError, in Python's words, for what is not there, and for what training wrote.
void require_exported(const std::filesystem::path& path) {
  std::error_code none;
  const bool trained = path.extension() == ".pt" || path.extension() == ".grammar";
  if (!std::filesystem::exists(path, none)) throw UserError(path.string() + ": no such " + (trained ? "file" : "bundle"));
  if (!trained || std::filesystem::is_directory(path, none)) return;
  throw UserError(path.string() + ": a model that is not exported, expected a bundle: `cgen export` makes one of it");
}

std::string architecture_of(const Json& manifest) { return manifest.value("architecture", "recurrent"); }

std::string manifest_content(const std::filesystem::path& path) {
  auto content = read_within(path, LARGEST_MANIFEST);
  if (!content) throw UserError("cannot be read: expected a plain file, no link");
  if (content->size() > LARGEST_MANIFEST) throw UserError("more than " + with_commas(LARGEST_MANIFEST) + " bytes");
  return std::move(*content);
}

Json manifest_of(const std::string& content) {
  Json manifest = json_of(content);
  const Json format = manifest.is_object() ? manifest.value("format", Json()) : Json();
  if (format != "compgen-bundle") {
    throw UserError("format " + beginning(represented_value(format), 80) + ", expected 'compgen-bundle'");
  }
  const Json version = manifest.value("version", Json());
  if (version != 1 && version != true) {  // which is 1 in Python, and no whole number below
    throw UserError("bundle version " + beginning(represented_value(version), 80) + ", this compgen reads 1");
  }
  require_schema("manifest", manifest);
  const std::string architecture = architecture_of(manifest);
  const Layout& layout = LAYOUTS.at(architecture);  // which the schema has checked
  require_consistent(manifest, architecture, layout);
  require_whole(manifest, layout);
  return manifest;
}

}  // namespace

double warm(double temperature) {
  require_warm(temperature, "temperature " + shown(temperature));
  return temperature;
}

Bundle::Bundle(const std::filesystem::path& path) : folder(path) {
  require_exported(folder);
  const auto manifest_path = folder / "manifest.json";
  std::error_code none;
  if (!std::filesystem::exists(manifest_path, none)) {
    const auto inner = folder / "bundle";  // of a comparison's folder
    const std::string hint = std::filesystem::exists(inner / "manifest.json", none) ? "; " + inner.string() + " is one" : "";
    throw UserError(folder.string() + ": not a bundle: it has no manifest.json" + hint);
  }
  std::string place = manifest_path.string();  // what a problem is about
  try {
    const std::string content = manifest_content(manifest_path);
    const Json manifest = manifest_of(content);
    identity = sha256(content);
    predicts = manifest.at("kind") == "predictor";
    approximate = !manifest.value("approximation", Json()).is_null();
    architecture = architecture_of(manifest);
    max_length = manifest.at("max_length").get<std::int64_t>();
    prototypes = manifest.at("prototypes").get<std::int64_t>();
    if (architecture == "recurrent" && !predicts) temperature = temperature_of(manifest.at("sampling"));
    for (const auto& [name, entry] : manifest.at("files").items()) {
      place = (folder / name).string();
      files[name] = checked(folder / name, entry);
    }
    for (const auto& [name, graph] : manifest.at("graphs").items()) {
      place = (folder / name).string();
      require_sealed(file(name));
    }
    place = (is_grammar() ? folder : manifest_path).string();
    if (architecture == "recurrent") read_network(manifest);
    if (is_transformer() && has(STEP_WEIGHTS)) read_transformer(manifest);
    if (architecture == "grammar") read_grammar(manifest);
    for (const char* name : {RULES, TARGET_RULES}) {
      place = (folder / name).string();
      if (is_grammar()) require_utf8(file(name));
    }
    place = (folder / "vocabulary.json").string();
    vocabulary = tokens_of(file("vocabulary.json"));
    if (predicts) return;
    place = (folder / "pool.safetensors").string();
    pool = Pool(file("pool.safetensors"), prototypes, static_cast<std::int64_t>(vocabulary.size()));
  } catch (const Json::exception& error) {
    throw UserError(place + ": " + error.what());
  } catch (const UserError& error) {
    throw UserError(place + ": " + error.what());
  }
}

void Bundle::read_network(const Json& manifest) {
  const Json& shape = manifest.at("shape");
  dtype = shape.at("dtype").get<std::string>();
  hidden = shape.at("hidden").get<std::int64_t>();
  output = shape.at("output").get<std::int64_t>();
  if (const Json found = shape.value("latent", Json()); !found.is_null()) {
    latent.start = found.at("start").get<std::int64_t>();
    latent.size = found.at("size").get<std::int64_t>();
    latent.norm = found.at("norm").get<double>();
  }
  network = network_of(manifest.at("config").at("network"));
  if (prototypes == 0) return;
  attention = last_size(manifest.at("graphs"), "keys");
  final_size = last_size(manifest.at("graphs"), "final");
}

void Bundle::read_transformer(const Json& manifest) {
  const Json config = manifest.at("config").value("network", Json());
  require_schema("transformer", config, "config.network");
  transformer.layers = config.at("layers").get<std::int64_t>();
  transformer.heads = config.at("heads").get<std::int64_t>();
  transformer.size = config.at("size").get<std::int64_t>();
  transformer.inner = config.at("inner").get<std::int64_t>();
  transformer.relative = config.at("relative").get<std::int64_t>();
  if (transformer.size % 2 != 0 || transformer.size % transformer.heads != 0) {
    throw UserError("config.network: a size of " + std::to_string(transformer.size) + " and " +
                    std::to_string(transformer.heads) + " heads, expected an even multiple");
  }
  dtype = "float32";
  for (const auto& tensor : manifest.at("graphs").at("step.onnx").at("outputs")) {
    if (tensor.at("name") == "log_probs") dtype = tensor.at("dtype").get<std::string>();
  }
}

void Bundle::read_grammar(const Json& manifest) {
  grammar = grammar_of(manifest.at("sampling"));
  temperature = manifest.at("sampling").at("temperature").get<std::array<double, 2>>();
}

const std::string& Bundle::file(const std::string& name) const {
  const auto found = files.find(name);
  if (found == files.end()) throw UserError("lists no " + name);
  return found->second;
}

}  // namespace compgen
