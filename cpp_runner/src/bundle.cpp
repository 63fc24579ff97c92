#include "bundle.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "errors.h"
#include "sha256.h"

namespace compgen {
namespace {

using Json = nlohmann::json;

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  if (stream) content << stream.rdbuf();
  if (!stream) throw UserError(path.string() + ": cannot be read");
  return content.str();
}

std::int64_t size(const Json& value, const char* name, std::int64_t least, std::int64_t most) {
  const auto found = value.at(name).get<double>();
  if (!(found >= static_cast<double>(least) && found <= static_cast<double>(most)) || found != std::floor(found)) {
    throw UserError(std::string(name) + " is " + value.at(name).dump() + ", expected a whole number from " +
                    std::to_string(least) + " to " + std::to_string(most));
  }
  return static_cast<std::int64_t>(found);
}

// The last size in the shape of an output of the encoder.
std::int64_t last_size(const Json& manifest, const std::string& output) {
  for (const auto& tensor : manifest.at("graphs").at("encoder.onnx").at("outputs")) {
    if (tensor.at("name") == output) return size(Json{{"size", tensor.at("shape").back()}}, "size", 1, 1 << 20);
  }
  throw UserError("encoder.onnx gives no " + output);
}

Network network_of(const Json& config) {
  Network network;
  network.feed = config.at("feed").get<bool>();
  network.copying = config.at("copying").get<bool>();
  network.tanh = config.at("activation") == "tanh";
  network.positions = size(config, "positions", 0, 1 << 20);
  return network;
}

std::string checked(const std::filesystem::path& folder, const std::string& name, const Json& entry) {
  if (name.empty() || name == "." || name == ".." || name.find_first_of(std::string("/\\\0", 3)) != std::string::npos) {
    throw UserError("file name '" + name + "', expected a plain name inside the bundle");
  }
  const auto path = folder / name;
  std::error_code none;  // what cannot be looked at is not there
  if (std::filesystem::is_symlink(path, none) || !std::filesystem::is_regular_file(path, none)) {
    throw UserError(name + ": missing, expected a file");
  }
  const auto expected = entry.at("size").get<std::uintmax_t>();
  const auto found = std::filesystem::file_size(path);
  if (found != expected) {
    throw UserError(name + ": " + std::to_string(found) + " bytes, expected " + std::to_string(expected) +
                    ": cut short or altered");
  }
  std::string content = read(path);
  if (sha256(content) != entry.at("sha256").get<std::string>()) {
    throw UserError(name + ": altered: its SHA-256 is not the manifest's");
  }
  return content;
}

std::vector<std::string> tokens_of(const std::string& content) {
  auto tokens = Json::parse(content).get<std::vector<std::string>>();
  const std::vector<std::string> specials = {"<pad>", "<s>", "</s>", "→", "<unk>"};
  const std::set<std::string> distinct(tokens.begin(), tokens.end());
  if (tokens.size() < specials.size() || !std::equal(specials.begin(), specials.end(), tokens.begin()) ||
      distinct.size() != tokens.size()) {
    throw UserError("vocabulary.json: expected distinct tokens, <pad> <s> </s> → <unk> first");
  }
  return tokens;
}

}  // namespace

double warm(double temperature) {
  if (temperature != 0 && !(temperature >= 1e-3 && temperature <= 1e3)) {
    throw UserError("temperature " + std::to_string(temperature) + ": expected 0 (greedy), or from 0.001 to 1000");
  }
  return temperature;
}

Bundle::Bundle(const std::filesystem::path& path) : folder(path) {
  const auto manifest_path = folder / "manifest.json";
  std::error_code none;
  if (!std::filesystem::is_regular_file(manifest_path, none)) {
    throw UserError(folder.string() + ": not a bundle: it has no manifest.json");
  }
  try {
    const Json manifest = Json::parse(read(manifest_path));
    if (manifest.at("format") != "compgen-bundle") throw UserError("format is not compgen-bundle");
    if (manifest.at("version") != 1) throw UserError("bundle version is not 1, which this program reads");
    predicts = manifest.at("kind") == "predictor";
    if (!predicts && manifest.at("kind") != "generator") throw UserError("neither a generator's bundle nor a predictor's");
    const std::string architecture = manifest.value("architecture", "recurrent");
    if (architecture != "recurrent") {
      throw UserError("a " + architecture + ", which this program does not run: compgen does");
    }
    for (const auto& [name, entry] : manifest.at("files").items()) files[name] = checked(folder, name, entry);
    dtype = manifest.at("shape").at("dtype").get<std::string>();
    if (dtype != "float32" && dtype != "float64") throw UserError("dtype " + dtype + ", expected float32 or float64");
    prototypes = size(manifest, "prototypes", 0, 64);
    max_length = size(manifest, "max_length", 1, 1 << 20);
    hidden = size(manifest.at("shape"), "hidden", 1, 1 << 20);
    output = size(manifest.at("shape"), "output", 1, 1 << 20);
    if (const auto found = manifest.at("shape").find("latent");
        found != manifest.at("shape").end() && !found->is_null()) {
      latent.start = size(*found, "start", 0, output);
      latent.size = size(*found, "size", 2, output - latent.start);
      latent.norm = found->at("norm").get<double>();
    }
    network = network_of(manifest.at("config").at("network"));
    if (prototypes > 0) {
      attention = last_size(manifest, "keys");
      final_size = last_size(manifest, "final");
    }
    vocabulary = tokens_of(file("vocabulary.json"));
    if (predicts) {
      if (prototypes != 1) throw UserError("a predictor of " + std::to_string(prototypes) + " memories, expected 1");
      return;
    }
    const auto found = manifest.at("sampling").at("temperature").get<std::vector<double>>();
    if (found.size() != 2) throw UserError("sampling.temperature: expected two numbers");
    temperature = {warm(found[0]), warm(found[1])};
    pool = Pool(file("pool.safetensors"), prototypes, static_cast<std::int64_t>(vocabulary.size()));
  } catch (const Json::exception& error) {
    throw UserError(manifest_path.string() + ": " + error.what());
  } catch (const UserError& error) {
    throw UserError(folder.string() + ": " + error.what());
  }
}

const std::string& Bundle::file(const std::string& name) const {
  const auto found = files.find(name);
  if (found == files.end()) throw UserError("lists no " + name);
  return found->second;
}

}  // namespace compgen
