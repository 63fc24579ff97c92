// compgen-ngram: texts scored by KenLM's models and mixtures of them, without Python. `--help` says how it is called.
//
// `scores` is for compgen's Python. For each block of lines it writes, in the machine's byte order, what numpy can take
// as it is:
//
//   uint32 sentences, uint32 tokens (those of the text and one end for each sentence)
//   uint32 tokens of each sentence
//   for each model: float32 log10 probability of each token; uint8 length of the n-gram that it was found with, 0 for a
//   word that is not in the vocabulary; uint8 words of history that the model knew before it
//
// Without models it only checks the text. What a user can mend is one message and exit code 2.

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "errors.h"
#include "measuring.h"
#include "whole_file.h"

namespace {

namespace fs = std::filesystem;
using compgen::Block;
using compgen::UserError;

constexpr const char* HELP = R"(
compgen-ngram perplexity MODEL [TEXT...]   each text's perplexity, with and without unknown words
compgen-ngram rescore MODEL [TEXT]         for each line its log_prob (nats), tokens and unknown tokens; blank lines too
compgen-ngram scores [MODEL...] <TEXT      each token's scores by each model, as arrays; for compgen's Python
compgen-ngram words MODEL                  the words that a model of KenLM knows

MODEL is a model of KenLM, a mixture that `cgen lm interpolate` wrote, or a bundle of a recurrent language model, which
compgen-score runs (named by COMPGEN_SCORER, beside this program or on PATH; `make runner` builds it). TEXT has a sentence
a line, plain or compressed by gzip; without it, or as -, it is standard input. The sources of data (.jsonl, .json, .csv,
.tsv, .parquet) are read by `cgen lm`.

  --threads N      threads that score; by default one per core
  --json           perplexity: print JSON, a line for each text
  --sentences OUT  perplexity: write each sentence's tokens, unknown tokens and loss (nats), as TSV
  --tokens OUT     perplexity: write each token's score, as TSV
  --blank          scores: a blank line is a sentence without words
  --mixed          scores: refuse models that do not know the same words
)";

struct Options {
  std::string command;
  std::vector<std::string> words, given;  // what is no option, and options by their names
  std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  bool json = false, blank = false, mixed = false;
  std::string sentences, tokens;  // names of files, or empty
};

std::size_t read_threads(const std::string& text) {
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > 1024) {
    throw UserError("--threads " + text + ": expected a number from 1 to 1024");
  }
  return count;
}

Options read_options(int count, char** arguments) {
  Options options;
  const std::vector<std::string> given(arguments + 1, arguments + count);
  bool only_words = false;  // after --
  for (auto at = given.begin(); at != given.end(); ++at) {
    const bool word = only_words || at->compare(0, 1, "-") != 0 || *at == "-";
    if (!word) options.given.push_back(*at);
    const auto value = [&] {
      if (at + 1 == given.end()) throw UserError(*at + ": expected a value behind it");
      return *++at;
    };
    if (word && options.command.empty()) options.command = *at;
    else if (word) options.words.push_back(compgen::tidy(*at));
    else if (*at == "--") only_words = true;
    else if (*at == "--threads") options.threads = read_threads(value());
    else if (*at == "--json") options.json = true;
    else if (*at == "--blank") options.blank = true;
    else if (*at == "--mixed") options.mixed = true;
    else if (*at == "--sentences") options.sentences = compgen::tidy(value());
    else if (*at == "--tokens") options.tokens = compgen::tidy(value());
    else throw UserError(*at + ": no such option; `compgen-ngram --help` lists them");
  }
  return options;
}

[[noreturn]] void unwritten() { throw UserError("standard output: cannot be written"); }

template <class T>
void put(const std::vector<T>& values) {
  if (std::fwrite(values.data(), sizeof(T), values.size(), stdout) != values.size()) unwritten();
}

void put(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) unwritten();
}

// Compgen's Python passes these on.
void warn(const compgen::Models& models) {
  std::set<std::string> said;
  for (const auto& model : models) said.insert(model->remark());
  for (const std::string& remark : said)
    if (!remark.empty()) std::fprintf(stderr, "warning: %s\n", remark.c_str());
}

void scores(const Options& options) {
  const auto models = compgen::open_models(options.words, options.threads, options.mixed);
  const compgen::Scoring scoring{models, nullptr, options.blank, options.threads, false};
  compgen::score("-", scoring, [](Block&) {}, [](Block& block) {
    const auto& lengths = block.sentences.lengths;
    put(std::vector<std::uint32_t>{static_cast<std::uint32_t>(lengths.size()),
                                   static_cast<std::uint32_t>(block.sentences.tokens())});
    put(lengths);
    for (const auto& each : block.models) put(each.log10), put(each.matched), put(each.known);
  });
  warn(models);
}

void rescore(const Options& options) {
  if (options.words.empty() || options.words.size() > 2) throw UserError("rescore: expected MODEL and perhaps TEXT");
  const auto mixture = compgen::open_mixture(options.words[0]);
  const auto models = compgen::open_models(mixture.models, options.threads, true);
  const compgen::Scoring scoring{models, &mixture, true, options.threads, true};
  compgen::score(
      options.words.size() > 1 ? options.words[1] : "-", scoring,
      [](Block& block) { block.rows = compgen::sentence_rows(block, true); }, [](Block& block) { put(block.rows); });
  warn(models);
}

std::vector<std::string> unfinished;  // files that are being written, by the names that they have until then

void end_by_signal(int signal) {
  for (const std::string& name : unfinished) unlink(name.c_str());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

compgen::Perplexity measure(const std::string& text, const compgen::Scoring& scoring, const Options& options) {
  std::unique_ptr<compgen::WholeFile> sentences, tokens;
  if (!options.sentences.empty()) {
    sentences = std::make_unique<compgen::WholeFile>(options.sentences);
    sentences->write("tokens\tunknown\tloss\n");
  }
  if (!options.tokens.empty()) {
    tokens = std::make_unique<compgen::WholeFile>(options.tokens);
    tokens->write("sentence\tposition\tlog10\tmatched\tknown\n");
  }
  for (const auto* file : {sentences.get(), tokens.get()})
    if (file) unfinished.push_back(file->temporary());
  if (!unfinished.empty()) std::signal(SIGINT, end_by_signal), std::signal(SIGTERM, end_by_signal);
  compgen::Perplexity found;
  const auto finish = [&](Block& block) {
    if (sentences) block.rows = compgen::sentence_rows(block, false);
  };
  compgen::score(text, scoring, finish, [&](Block& block) {
    if (tokens) tokens->write(compgen::token_rows(block, found.sentences));
    if (sentences) sentences->write(block.rows);
    found.add(block);
  });
  if (!found.sentences) throw UserError(text + ": found no sentence to measure");
  if (sentences) sentences->finish();
  if (tokens) tokens->finish();
  return found;
}

// A number to 12 digits, as in Python's JSON: those behind them depend on the order of a sum.
std::string figure(double number) {
  if (!std::isfinite(number)) return "Infinity";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.12g", number);
  return nlohmann::json(std::strtod(digits, nullptr)).dump();
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string as_json(const std::string& model, const std::string& text, const compgen::Perplexity& found) {
  return R"({"model": )" + quoted(model) + R"(, "text": )" + quoted(text) + R"(, "sentences": )" +
         std::to_string(found.sentences) + R"(, "tokens": )" + std::to_string(found.tokens) + R"(, "unknown": )" +
         std::to_string(found.unknown) + R"(, "perplexity": )" + figure(found.including()) +
         R"(, "perplexity_without_unknown": )" + figure(found.excluding()) + "}\n";
}

using Row = std::vector<std::string>;

std::string four_decimals(double number) {
  char digits[400];
  std::snprintf(digits, sizeof digits, "%.4f", number);
  return digits;
}

// The characters of a text in UTF-8, which a terminal shows in as many places.
std::size_t width(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

void show(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - width(row[i]) + 2, ' ');
    put(line.substr(0, line.size() - 2) + "\n");
  }
}

// Refuses a file to be written that is read, too, or of a kind that this program does not write.
void check_out(const std::string& out, const std::string& option, const std::vector<std::string>& read) {
  if (out.empty()) return;
  std::error_code none;
  for (const std::string& path : read) {
    if (fs::is_regular_file(out, none) && fs::equivalent(out, path, none)) {
      throw UserError(out + ": it is read, too: choose another name for what is written");
    }
  }
  for (const char* suffix : {".gz", ".parquet"}) {
    if (fs::path(out).extension() == suffix) {
      throw UserError(option + " " + out + ": expected a file of TSV; `cgen lm perplexity` writes " + suffix);
    }
  }
}

void perplexity(const Options& options) {
  if (options.words.empty()) throw UserError("perplexity: expected MODEL and perhaps texts");
  const std::string& model = options.words[0];
  const auto mixture = compgen::open_mixture(model);
  std::vector<std::string> texts(options.words.begin() + 1, options.words.end());
  if (texts.empty()) texts.push_back("-");
  if (texts.size() > 1 && !(options.sentences + options.tokens).empty()) {
    throw UserError("--sentences and --tokens are for one text");
  }
  if (!options.sentences.empty() && options.sentences == options.tokens) {
    throw UserError("--sentences and --tokens would both be " + options.tokens + ": give two names");
  }
  std::vector<std::string> read = options.words;
  read.insert(read.end(), mixture.models.begin(), mixture.models.end());
  check_out(options.sentences, "--sentences", read), check_out(options.tokens, "--tokens", read);
  const auto models = compgen::open_models(mixture.models, options.threads, true);
  std::vector<Row> rows{{"text", "sentences", "tokens", "unknown", "perplexity", "without unknown"}};
  for (const std::string& text : texts) {
    const auto found = measure(text, {models, &mixture, false, options.threads, true}, options);
    if (options.json) put(as_json(model, text, found));
    rows.push_back({text, compgen::with_commas(found.sentences), compgen::with_commas(found.tokens),
                    compgen::with_commas(found.unknown),
                    four_decimals(found.including()), four_decimals(found.excluding())});
  }
  if (!options.json) show(rows);
  warn(models);
}

// An option that a command has no use for must not pass for one that it heeds.
void check_options(const Options& options) {
  const std::map<std::string, std::set<std::string>> uses{{"perplexity", {"--json", "--sentences", "--tokens"}},
                                                          {"rescore", {}},
                                                          {"scores", {"--blank", "--mixed"}},
                                                          {"words", {}}};
  const auto used = uses.find(options.command);
  for (const std::string& name : options.given) {
    if (used == uses.end() || name == "--" || name == "--threads" || used->second.count(name)) continue;
    throw UserError(options.command + " has no use for " + name);
  }
}

void dispatch(const Options& options) {
  check_options(options);
  if (options.command == "perplexity") return perplexity(options);
  if (options.command == "rescore") return rescore(options);
  if (options.command == "scores") return scores(options);
  if (options.command == "words" && options.words.size() == 1) return compgen::list_words(options.words[0]);
  throw UserError((options.command.empty() ? "no command" : options.command) +
                  ": expected perplexity, rescore, scores or words, as `compgen-ngram --help` says");
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count > 1 && (std::string(arguments[1]) == "--help" || std::string(arguments[1]) == "-h")) {
      put(std::string(HELP + 1));
    } else {
      dispatch(read_options(count, arguments));
    }
    if (std::fflush(stdout) || std::ferror(stdout)) unwritten();  // an error of before may be over
    return 0;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: not enough memory; try fewer --threads\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
