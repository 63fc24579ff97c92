#include "record.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>

#include "errors.h"
#include "output.h"
#include "strict_json.h"
#include "text.h"

namespace compgen {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

template <class Value>
Json given(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

// The options that decide which samples are drawn, besides the filters.
Json drawn_of(const Options& options) {
  return {{"draws", given(options.draws)},
          {"rare_tokens", options.rare_tokens},
          {"prototypes", options.filter.prototypes},
          {"beam", Json()},
          {"seed", options.sampling.seed},
          {"start", options.sampling.start},
          {"rarity", options.filter.rarity},
          {"ngram", options.filter.ngram},
          {"temperature", options.sampling.temperature}};
}

// The model as Python's record names it: a shipped one by the name that it was called by, another by its path.
std::string model_of(const Options& options) {
  if (!options.model.empty()) return options.model;
  std::error_code failed;
  const fs::path whole = fs::canonical(options.bundle, failed);
  return failed ? options.bundle : whole.string();
}

std::string record_path(const std::string& out) { return out + ".run.json"; }

// What is typed for a name in the record, as Python's TYPED.
std::string typed(const std::string& name) {
  if (name == "compgen") return "version of compgen";
  if (name == "identity") return "model";
  if (name == "asked") return "-n";
  if (name == "filters") return "--filter";
  return name == "rare_tokens" ? "--rare-token" : "--" + name;
}

}  // namespace

Json asked_of(const Options& options, const Bundle& bundle) {
  Json asked = {{"compgen", COMPGEN_VERSION},
                {"identity", bundle.identity},
                {"asked", given(options.count)},
                {"filters", options.filter_names},
                {"novelty", options.filter.novelty}};
  asked.update(drawn_of(options));
  asked["vote"] = options.choice.vote;
  asked["margin"] = given(options.choice.margin);
  asked["support"] = given(options.choice.support);
  asked["best"] = given(options.choice.best);
  return asked;
}

Json resumable_of(const Options& options, const Bundle& bundle) {
  Json found = {{"compgen", COMPGEN_VERSION}, {"model", bundle.identity}, {"-n", given(options.count)}};
  found.update(drawn_of(options));
  found["filters"] = options.filter_names;
  found["novelty"] = options.filter.novelty;
  return found;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  try {
    return std::string(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios_base::failure&) {
    return "";
  }
}

bool same(const Json& one, const Json& other) { return one.dump() == other.dump(); }

std::int64_t whole(const Json& number) {
  constexpr std::int64_t MOST = std::int64_t{1} << 62;  // sums of two can be computed
  if (!number.is_number_integer() || number < 0 || number > MOST) throw UserError("no count");
  return number.get<std::int64_t>();
}

bool is_finished(const std::string& out, const Json& asked) {
  const std::string record = record_path(out);
  std::error_code none;  // of a link to itself, which is replaced like a file
  if (!fs::is_regular_file(out, none) || !fs::exists(record, none)) return false;
  if (fs::exists(partial_path(resolved(out)), none)) return false;
  Json found;
  std::optional<std::int64_t> bytes;  // none in records of older versions
  try {
    found = strict_ordered_json(content_of(record));
    if (found.is_object() && found.contains("bytes")) bytes = whole(found["bytes"]);
  } catch (const UserError&) {  // of what is no JSON, or no count
    found = Json();
  }
  if (!found.is_object()) {
    throw UserError(record + ": not a record of sampling: leave out --resume to make " + out + " anew");
  }
  std::string differing;
  for (const auto& [name, value] : asked.items()) {
    if (!same(found.value(name, Json()), value)) differing += (differing.empty() ? "" : ", ") + typed(name);
  }
  if (!differing.empty()) {
    throw UserError(out + ": it was made with another " + differing + ": leave out --resume to make it anew");
  }
  const auto size = static_cast<std::int64_t>(fs::file_size(out));
  if (size == bytes.value_or(size)) return true;
  throw UserError(out + ": " + with_commas(size) + " bytes, expected " + with_commas(*bytes) +
                  ": cut short or altered: leave out --resume to make it anew");
}

void write_record(const Options& options, const Json& asked, const Counts& counts, std::int64_t written,
                  double seconds) {
  Json rejected = Json::object();
  for (const auto& [reason, count] : counts.rejected) rejected[reason] = count;
  Json content = {{"compgen", COMPGEN_VERSION}, {"model", model_of(options)}};
  content.update(asked);
  content["written"] = written;
  content["bytes"] = fs::file_size(options.out);
  content["counts"] = {{"drawn", counts.drawn}, {"kept", counts.kept}, {"rejected", rejected}};
  content["next"] = options.sampling.start + counts.drawn;
  content["seconds"] = std::round(seconds * 100) / 100;
  Output record(record_path(options.out));
  record.line(content.dump(1, ' ', true, Json::error_handler_t::replace));
  record.finish();
}

void forget_record(const std::string& out) {
  std::error_code none;
  if (!is_stream(out)) fs::remove(record_path(out), none);
}

}  // namespace compgen
