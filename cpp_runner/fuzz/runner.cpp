// Readers of the runner.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bundle.h"
#include "derivations.h"
#include "errors.h"
#include "filters.h"
#include "gzip.h"
#include "output.h"
#include "partial.h"
#include "readers.h"
#include "record.h"
#include "rules.h"
#include "safetensors.h"
#include "sealed.h"
#include "sha256.h"
#include "sources.h"
#include "step.h"
#include "strict_json.h"
#include "targets.h"
#include "text.h"
#include "transformer.h"
#include "verify.h"

namespace compgen::fuzz {
namespace {

using Plain = nlohmann::json;

void read_json(const std::string& input) {
  const Plain value = strict_json(input);
  const auto again = strict_json(value.dump());
  require(again == value || value.dump() == again.dump(), "JSON that is written reads as the same");
  require(strict_ordered_json(input).size() == value.size(), "an object has as many names in either order");
}

void read_arrays(const std::string& input) {
  const Safetensors arrays(input);
  const auto first = input.find('"'), end = input.find('"', first + 1);
  const std::string named = end == std::string::npos ? "" : input.substr(first + 1, end - first - 1);
  for (const std::string& name : {named, std::string("tokens"), std::string("starts"), std::string("rules")}) {
    if (!arrays.has(name)) continue;
    const auto shape = arrays.shape(name);
    const auto tried = [&](auto read) {
      try {
        read();
      } catch (const UserError&) {
      }
    };
    tried([&] { arrays.bytes(name, shape); });
    tried([&] { arrays.reals<float>(name, shape); });
    tried([&] { arrays.reals<double>(name, shape); });
    tried([&] { arrays.integers(name, shape.size(), {"U8", "U16", "I32", "I64"}); });
  }
}

void choose_prototypes(const Pool& pool, std::int64_t prototypes) {
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(prototypes));
  const auto size = static_cast<std::int64_t>(pool.sequences().size());
  for (const std::int64_t sample : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 60}) {
    pool.choose(3, sample, chosen.data());
    for (const auto one : chosen) require(one >= 0 && one < size, "a prototype is in the pool");
  }
}

void read_pool(const std::string& input) {
  if (input.empty()) return;
  const std::int64_t prototypes = static_cast<unsigned char>(input[0]) % 4;
  choose_prototypes(Pool(input.substr(1), prototypes, 12), prototypes);
}

void read_graph(const std::string& input) { require_sealed(input); }

void read_rules(const std::string& input) {
  require_utf8(input);
  const Grammar grammar(input);
  const auto size = static_cast<std::int32_t>(grammar.tokens.size());
  for (const Rule& rule : grammar.rules) {
    for (const auto* side : {&rule.source, &rule.target}) {
      for (const auto symbol : *side) require(symbol >= -rule.arity && symbol < size, "a symbol is a token or nonterminal");
    }
  }
}

// Target rules, and behind a line ===, rules whose targets they are asked about.
void read_targets(const std::string& input) {
  require_utf8(input);
  const std::size_t cut = std::min(input.find("===\n"), input.size());
  const TargetGrammar targets(input.substr(0, cut));
  const Grammar grammar(cut == input.size() ? "a b ### a b" : input.substr(cut + 4));
  const Checker checker(targets, grammar.tokens);
  for (const Rule& rule : grammar.rules) {
    for (const auto& one : checker.signatures(rule.target)) {
      require(one.size() == 1 + static_cast<std::size_t>(rule.arity), "a signature has a name for each nonterminal");
    }
  }
}

void read_text(const std::string& input) {
  require_utf8(input);
  std::size_t bytes = 0;
  for (const auto line : lines_of(input)) {
    require(line.data() >= input.data() && line.data() + line.size() <= input.data() + input.size(), "a line lies within");
    bytes += line.size();
    const auto words = split(line);
    require(split(joined(words)) == words, "words that are joined are those that are split");
    for (const auto word : words) require(!word.empty(), "a word has characters");
    require_utf8(quoted(line, 80)), require_utf8(beginning(line, 3));
  }
  require(bytes <= input.size(), "lines have no more bytes than the text");
}

const std::vector<std::string>& vocabulary() {
  static const std::vector<std::string> tokens = {"<pad>", "<s>", "</s>", "→", "<unk>", "a", "b", "jump", "é", "I_WALK"};
  return tokens;
}

void read_sources(const std::string& input) {
  for (const auto& source : parse_sources(unpacked(input, "sources"), "sources", vocabulary())) {
    for (const auto id : source) require(id >= SPECIALS && id < 10, "a token of a source is a word");
  }
}

void read_gzip(const std::string& input) {
  const std::string text = unpacked(input, "x.gz");
  Gzip gzip("x.gz");
  std::string packed = gzip.packed(text);
  packed += gzip.end();
  require(input.empty() || unpacked(packed, "x.gz") == text, "what is packed unpacks as the same");
}

void read_line(const std::string& input) {
  if (input.empty()) return;
  try {
    words_of(std::string_view(input).substr(1), input[0] % 2);
  } catch (const Plain::exception& error) {  // which its callers take for a refusal
    throw UserError(error.what());
  }
}

// A whole number that is in an object, or 0.
std::int64_t count_in(const Json& object, const char* name) {
  const Json found = object.is_object() && object.contains(name) ? object[name] : Json();
  return found.is_number_integer() && found >= 0 ? found.get<std::int64_t>() : 0;
}

// A journal with the sum of what it says and of what was written, by zlib's arithmetic and not by ours.
std::string summed(const std::string& journal, const std::string& written) {
  Json state = Json::parse(journal, nullptr, false);
  if (!state.is_object() || !state.contains("counts") || !state["counts"].is_object()) return journal;
  const Json &counts = state["counts"], step = state.value("step", Json(""));
  std::string said = step.is_string() ? step.get<std::string>() : "";
  said += "\n" + std::to_string(count_in(state, "bytes"));
  for (const auto* name : {"drawn", "kept", "last"}) said += "\n" + std::to_string(count_in(counts, name));
  const Json rejected = counts.value("rejected", Json());
  for (auto at = rejected.begin(); rejected.is_object() && at != rejected.end(); ++at) {
    said += "\n" + at.key() + "\n" + std::to_string(count_in(rejected, at.key().c_str()));
  }
  const auto bytes = std::min<std::size_t>(static_cast<std::size_t>(count_in(state, "bytes")), written.size());
  const auto sum = ::adler32(1, reinterpret_cast<const Bytef*>(written.data()), static_cast<uInt>(bytes));
  state["check"] = ::adler32(sum, reinterpret_cast<const Bytef*>(said.data()), static_cast<uInt>(said.size()));
  return state.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A journal (part 0; part 1: with the right sum), the file that it speaks of, and the record of a run that has ended.
void read_run(const std::string& input) {
  const Parts parts = parts_of(input, 4);
  const std::string out = folder() + "/s.jsonl", partial = out + ".partial";
  std::string journal, written, record;
  bool mend = false;
  for (const auto& [name, content] : parts) {
    if (name == 0) journal = content, mend = false;
    if (name == 1) journal = content, mend = true;
    if (name == 2) written = content;
    if (name == 3) record = content;
  }
  if (mend) journal = summed(journal, written);
  write_file(partial, written), write_file(partial + ".json", journal);
  step_of_interrupted(out);
  const Json options = {{"compgen", "0.1.0"}, {"-n", 30}, {"start", 0}, {"filters", {"novel", "unique"}}};
  try {
    PartialFile file(out, options, "own", true);
    std::size_t lines = 0;
    file.each_line([&](std::string_view line, std::int64_t) { lines += line.size() + 1; });
    require(lines <= written.size() + 1, "lines that are gone on from are those that were written");
  } catch (const UserError&) {
    require(std::filesystem::file_size(partial) == written.size(), "a run that is refused changes no file");
    if (record.empty()) throw;
  }
  std::filesystem::remove(partial), std::filesystem::remove(partial + ".json");
  write_file(out, written), write_file(out + ".run.json", record);
  is_finished(out, options);
}

// The manifest of a bundle with the sizes and hashes that its files have.
std::string mended(const std::string& manifest, const std::vector<std::pair<std::string, std::string>>& files) {
  Plain found = Plain::parse(manifest, nullptr, false);
  if (!found.is_object() || !found.contains("files") || !found["files"].is_object()) return manifest;
  for (const auto& [name, content] : files) {
    if (!found["files"].contains(name)) continue;
    found["files"][name] = {{"sha256", sha256(content)}, {"size", content.size()}};
  }
  return found.dump(-1, ' ', false, Plain::error_handler_t::replace);
}

// Takes two steps of a recurrent network, whose encoder gave zeros.
template <class Real>
void use_step(const Bundle& bundle, std::int64_t last) {
  const auto step = make_step<Real>(bundle);
  Batch<Real> batch(bundle, 2, 3);
  batch.rows = 2, batch.token = {last, BOS}, batch.position = {bundle.max_length, 0};
  const std::vector<Real> zeros(static_cast<std::size_t>(2 * bundle.attention));
  const std::int32_t tokens[] = {static_cast<std::int32_t>(last), EOS};
  std::fill(batch.memories.begin(), batch.memories.end(), Memory<Real>{zeros.data(), zeros.data(), tokens, 2});
  (*step)(batch);
  batch.advance(), batch.keep({1, 0, 1});
  (*step)(batch);
}

// The same of a Transformer, by its encoder.
template <class Real>
void use_transformer(const Bundle& bundle, std::int64_t last) {
  const auto network = make_transformer_step<Real>(bundle);
  Writing<Real> writing;
  network->open({last, EOS, EOS, PAD}, 2, 2, writing);
  network->step(writing);
  writing.keep({1, 0, 1});
  network->step(writing);
}

void use(const Bundle& bundle) {
  if (bundle.has("golden.json")) {
    try {
      const Golden golden(bundle);
    } catch (const UserError&) {  // nothing that is drawn depends on it
    }
  }
  if (bundle.is_grammar()) {
    const auto generator = make_grammar(bundle);
    Sampling sampling;
    sampling.temperature = bundle.temperature, sampling.stop = 2, sampling.slots = 2;
    const auto size = static_cast<std::int32_t>(bundle.vocabulary.size());
    generator->sample(sampling, [&](Draw&& draw) {
      for (const auto token : draw.tokens) require(token >= 0 && token < size, "a token that is drawn is one");
      return true;
    });
    return;
  }
  if (!bundle.predicts) {
    const Training training(bundle.pool);
    choose_prototypes(bundle.pool, bundle.prototypes);
  }
  if (!bundle.has(STEP_WEIGHTS)) return;
  const auto last = static_cast<std::int64_t>(bundle.vocabulary.size()) - 1;
  const bool twofold = bundle.dtype == "float64";
  if (bundle.is_transformer()) twofold ? use_transformer<double>(bundle, last) : use_transformer<float>(bundle, last);
  else twofold ? use_step<double>(bundle, last) : use_step<float>(bundle, last);
}

// The first part is a manifest: of that number, with its hashes as they are; of another, with those that are right.
void read_bundle(const std::string& input) {
  constexpr std::size_t FILES = std::size(BUNDLE_FILES);
  std::string manifest;
  bool mend = true;
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [name, content] : parts_of(input, FILES + 1)) {
    if (name == 0 || name == FILES) manifest = content, mend = name == FILES;
    else files.emplace_back(BUNDLE_FILES[name], content);
  }
  const std::string place = folder() + "/bundle/";
  std::filesystem::create_directory(place);
  for (const char* name : BUNDLE_FILES) {
    const auto found = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.first == name; });
    if (found == files.end()) ::remove((place + name).c_str());
    else write_file(place + name, found->second);
  }
  std::reverse(files.begin(), files.end());  // of two with one name the first is written
  write_file(place + "manifest.json", mend ? mended(manifest, files) : manifest);
  use(Bundle(place));
}

}  // namespace

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all = {
      {"json", read_json}, {"arrays", read_arrays}, {"pool", read_pool},       {"graph", read_graph},
      {"rules", read_rules}, {"targets", read_targets}, {"text", read_text},   {"sources", read_sources},
      {"gzip", read_gzip}, {"line", read_line},     {"run", read_run},         {"bundle", read_bundle},
  };
  return all;
}

}  // namespace compgen::fuzz
