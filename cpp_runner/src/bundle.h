// A bundle: the folder that `cgen export` writes. Its files are checked against the manifest's hashes, and nothing
// in it is run but its graphs; see compgen/runtime/bundle.py.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pool.h"

namespace compgen {

// What the decoder is made of (compgen/models/config.py).
struct Network {
  bool feed = false, copying = false, tanh = false;  // input feeding; copying; tanh on queries
  std::int64_t positions = 0;                        // the clip of relative positions
};

// A Transformer's sizes; `relative` is the clip of relative positions, 0 where tokens have sinusoids.
struct TransformerSizes {
  std::int64_t layers = 0, heads = 0, size = 0, inner = 0, relative = 0;
};

// The weights of our own step.
constexpr const char* STEP_WEIGHTS = "step.safetensors";
// Files of a grammar's bundle.
constexpr const char* RULES = "rules.txt";
constexpr const char* TARGET_RULES = "targets.cfg";
constexpr const char* SCORES = "scores.safetensors";

// How derivations of a grammar are drawn (compgen/csl/sampling.py): their levels, the root's being 0; tokens on a side;
// what is added to the scores of rules of `biased` nonterminals or more.
struct GrammarSettings {
  std::int64_t least = 0, most = 0, longest = 0, biased = 0;
  double bias = 0;
  std::int64_t unit_limit = 0;  // unit rules that parsing puts on top of each other
  bool copying = false;         // whether it copies tokens that no rule reads
};

struct Bundle {
  // Throws UserError: the folder is missing, no bundle, of another version, cut short or altered.
  explicit Bundle(const std::filesystem::path& folder);

  // The checked content of a file, or an error that says that the bundle has none.
  const std::string& file(const std::string& name) const;
  bool has(const std::string& name) const { return files.count(name) > 0; }

  bool is_grammar() const { return architecture == "grammar"; }
  bool is_transformer() const { return architecture == "transformer"; }

  std::filesystem::path folder;
  std::string identity;      // the manifest's SHA-256; the manifest holds those of all other files
  std::string architecture;  // recurrent, transformer or grammar
  std::map<std::string, std::string> files;  // content by name
  std::vector<std::string> vocabulary;
  Pool pool;
  bool approximate = false;  // by intent: weights in 8-bit integers
  bool predicts = false;  // a predictor, whose one memory is its source; else a generator
  std::string dtype;      // float32 or float64, of a network
  std::int64_t prototypes = 0, max_length = 0;
  std::int64_t hidden = 0, output = 0;         // sizes of the decoder's state; output is that of fed
  struct Latent {                              // the latent edit vector's place in fed, and its largest norm
    std::int64_t start = 0, size = 0;
    double norm = 0;
  } latent;
  Network network;
  TransformerSizes transformer;  // where it has weights for our own step
  std::int64_t attention = 0, final_size = 0;  // of a prototype token's key; of an encoder's last state
  GrammarSettings grammar;
  std::array<double, 2> temperature{};         // a generator's, of the source half and of the target half

 private:
  void read_network(const nlohmann::json& manifest);
  void read_transformer(const nlohmann::json& manifest);
  void read_grammar(const nlohmann::json& manifest);
};

// Throws UserError unless it is 0 (greedy) or between 0.001 and 1000: a probability to the power 1/T must not leave
// float32, nor may what is banned come.
double warm(double temperature);

}  // namespace compgen
