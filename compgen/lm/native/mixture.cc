#include "mixture.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "errors.h"
#include "mixing.h"
#include "strict_json.h"

namespace compgen {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* FORMAT = "compgen mixture of n-gram models 1";
constexpr double SLACK = 1e-5 + 1e-8;  // by which a sum of weights may differ from one
constexpr double SMALL = 1e-280;       // a probability below which parts of it may be no numbers

// The loss of a token whose probability is too small for a number: its parts are shares in the largest of them.
double rare(const std::vector<double>& row, const std::vector<Scores>& scores, std::size_t token) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  const auto part = [&](std::size_t m) { return std::log(row[m]) + LN10 * scores[m].log10[token]; };
  for (std::size_t m = 0; m < row.size(); ++m) largest = std::max(largest, part(m));
  if (std::isinf(largest)) return -largest;
  for (std::size_t m = 0; m < row.size(); ++m) sum += std::exp(part(m) - largest);
  return -(largest + std::log(sum));
}

bool is_name(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos;
}

std::vector<std::string> read_models(const Json& names, const fs::path& folder, const std::string& where) {
  bool good = names.is_array() && !names.empty();
  std::vector<std::string> models;
  for (std::size_t m = 0; good && m < names.size(); ++m) {
    good = is_name(names[m]);
    if (good) models.push_back(tidy((folder / names[m].get<std::string>()).string()));
  }
  if (!good) throw UserError(where + ": models: expected a list of names of files");
  return models;
}

std::vector<std::vector<double>> read_weights(const Json& rows, std::size_t models, const std::string& where) {
  bool good = rows.is_array() && (rows.size() == 1 || rows.size() == MAX_ORDER), sums = true;
  std::vector<std::vector<double>> weights;
  for (std::size_t c = 0; good && c < rows.size(); ++c) {
    good = rows[c].is_array() && rows[c].size() == models;
    double sum = 0;
    weights.emplace_back();
    for (std::size_t m = 0; good && m < models; ++m) {
      good = rows[c][m].is_number();
      if (!good) break;
      weights[c].push_back(rows[c][m].get<double>());
      sum += weights[c][m];
      sums = sums && weights[c][m] >= 0;
    }
    sums = sums && std::abs(sum - 1) <= SLACK;
  }
  if (!good) {
    throw UserError(where + ": weights: expected 1 row or " + std::to_string(MAX_ORDER) + ", each of " +
                    std::to_string(models) + " numbers, one for each model");
  }
  if (!sums) throw UserError(where + ": weights: expected numbers from 0 on that sum to one in each row");
  return weights;
}

Mixture read(const std::string& path, const std::string& content) {
  Json found;
  try {
    found = strict_json(content);
  } catch (const UserError&) {
    throw UserError(path + ": not a mixture: cut short, or not JSON in UTF-8 with finite numbers");
  }
  const Json format = found.value("format", Json());
  if (format != FORMAT) {
    const std::string shown = format.dump(-1, ' ', true).substr(0, 60);
    throw UserError(path + ": found the format " + shown + ", expected " + Json(FORMAT).dump());
  }
  const fs::path file = fs::is_symlink(path) ? fs::canonical(path) : fs::path(path);
  Mixture mixture;
  mixture.models = read_models(found.value("models", Json()), file.parent_path(), path);
  mixture.weights = read_weights(found.value("weights", Json()), mixture.models.size(), path);
  std::error_code none;
  for (const std::string& model : mixture.models) {
    if (!fs::exists(model, none)) {
      throw UserError(path + ": its model " + model + " is missing: put it there, or make the mixture again");
    }
  }
  return mixture;
}

}  // namespace

std::string tidy(const std::string& path) {
  fs::path found;
  for (const auto& part : fs::path(path))
    if (!part.empty() && part != ".") found /= part;
  return found.empty() ? "." : found.string();
}

Mixture open_mixture(const std::string& path) {
  std::error_code none;
  if (!fs::exists(path, none)) throw UserError(path + ": no such file, expected a language model or a mixture");
  std::ifstream stream;
  if (!fs::is_directory(path, none)) stream.open(path, std::ios::binary);
  if (stream.peek() != '{') return {{path}, {{1.0}}};
  return read(path, std::string(std::istreambuf_iterator<char>(stream), {}));
}

void Mixture::losses(const std::vector<Scores>& scores, std::vector<double>& losses) const {
  const std::size_t tokens = scores[0].log10.size();
  if (weights == std::vector<std::vector<double>>{{1.0}}) {
    losses.resize(tokens);
    for (std::size_t t = 0; t < tokens; ++t) losses[t] = -LN10 * scores[0].log10[t];
    return;
  }
  std::vector<double> sums;
  mix(weights, scores, sums, losses);
  for (std::size_t t = 0; t < tokens; ++t) {
    if (!(sums[t] > SMALL)) losses[t] = rare(weights[weights.size() == 1 ? 0 : scores[0].known[t]], scores, t);
  }
}

}  // namespace compgen
