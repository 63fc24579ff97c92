// compgen-sample: what `cgen sample` does, without Python; and the answers of predictors.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "derivations.h"
#include "errors.h"
#include "filters.h"
#include "output.h"
#include "predict.h"
#include "sampler.h"
#include "selection.h"
#include "step.h"
#include "text.h"
#include "verify.h"

namespace {

using namespace compgen;
using Clock = std::chrono::steady_clock;

// Rows decoded at a time: our step goes over a batch several times, so it should stay in the cache; a graph has more
// to do between its products, which is cheaper for many rows.
constexpr std::int64_t SLOTS_OF_OWN = 60, SLOTS_OF_GRAPH = 256;
constexpr std::int64_t SLOTS_OF_GRAMMAR = 256;  // samples that a thread hands on together
constexpr std::int64_t SLOTS_OF_BEAM = 32;       // sources, each with as many rows as the beam is wide
constexpr std::int64_t WIDEST = 1024;  // hypotheses of a beam
constexpr std::int64_t PATIENCE = 20'000;  // draws in a row without a sample before giving up

volatile std::sig_atomic_t interrupted = 0;  // by which signal

// As shells count: 130 for Ctrl-C, 143 for SIGTERM.
int interrupted_code() { return 128 + interrupted; }

// From now on a first signal asks the work to stop, and a second one ends the program.
void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { interrupted = number; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

struct Options {
  std::string bundle, input, out = "-", temperature, step = DEFAULT_STEP;
  std::vector<std::string> given;  // names of options
  bool raw = false, verify = false, trust_code = false;
  std::vector<std::string> filters;
  std::optional<std::int64_t> count, draws, beam;
  std::optional<std::string> novelty;
  std::optional<double> rarity;
  std::optional<std::size_t> ngram;
  std::vector<std::string> rare_tokens;
  FilterOptions filter;
  Choice choice;
  Sampling sampling;
  Answering answering;
};

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, by);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

double number(const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::logic_error&) {
  }
  if (used == 0 || used != text.size()) throw UserError("--temperature " + text + ": expected one or two numbers");
  return value;
}

void read_temperature(const std::string& text, std::array<double, 2>& temperature) {
  if (text.empty()) return;
  const auto parts = split(text, ',');
  if (parts.empty() || parts.size() > 2) throw UserError("--temperature " + text + ": expected one or two numbers");
  temperature = {warm(number(parts.front())), warm(number(parts.back()))};
}

// The filters of one or more --filter; what only one of them reads must not be given without it.
FilterOptions read_filters(const Options& options) {
  FilterOptions filter;
  for (const auto& given : options.filters) {
    for (const auto& name : split(given, ',')) {
      bool* const known = name == "novel"    ? &filter.novel
                          : name == "unique" ? &filter.unique
                          : name == "rare"   ? &filter.rare
                                             : nullptr;
      if (!known) throw UserError("no filter '" + name + "': expected some of novel, unique, rare");
      *known = true;
    }
  }
  if (!filter.novel && options.novelty) throw UserError("--novelty is for the filter novel: add --filter novel");
  if (!filter.rare && (options.rarity || options.ngram || !options.rare_tokens.empty())) {
    throw UserError("--rarity, --ngram and --rare-token are for the filter rare: add --filter rare");
  }
  if (!options.rare_tokens.empty() && (options.rarity || options.ngram)) {
    throw UserError("--rare-token names what is rare: leave out --rarity and --ngram");
  }
  filter.novelty = options.novelty.value_or(filter.novelty);
  filter.rarity = options.rarity.value_or(filter.rarity);
  filter.ngram = options.ngram.value_or(filter.ngram);
  return filter;
}

// A line about the work every quarter of a minute, or on a terminal one that changes.
class Progress {
 public:
  explicit Progress(std::int64_t goal) : goal_(goal) {}
  ~Progress() {
    if (shown_ && terminal_) std::cerr << "\n";
  }

  void update(const Counts& counts, bool by_kept) {
    const auto now = Clock::now();
    if (now - last_ < (terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(15'000))) return;
    last_ = now, shown_ = true;
    const double seconds = std::chrono::duration<double>(now - began_).count();
    std::cerr << (terminal_ ? "\r" : "") << "sample: " << (by_kept ? counts.kept : counts.drawn) << "/" << goal_ << " "
              << static_cast<std::int64_t>(static_cast<double>(counts.drawn) / seconds) << " draws/s, " << counts.kept
              << " kept" << (terminal_ ? "   " : "\n") << std::flush;
  }

 private:
  std::int64_t goal_;
  bool terminal_ = isatty(2) != 0, shown_ = false;
  Clock::time_point began_ = Clock::now(), last_ = Clock::now();
};

nlohmann::json record_of(const Options& options, const std::vector<std::string>& names, const Counts& counts,
                         std::int64_t written, double seconds) {
  const auto given = [](const auto& value) { return value ? nlohmann::json(*value) : nlohmann::json(nullptr); };
  nlohmann::json rejected = nlohmann::json::object();
  for (const auto& [reason, count] : counts.rejected) rejected[reason] = count;
  return {{"model", options.bundle},
          {"asked", given(options.count)},
          {"filters", names},
          {"novelty", options.filter.novelty},
          {"seed", options.sampling.seed},
          {"start", options.sampling.start},
          {"draws", given(options.draws)},
          {"rarity", options.filter.rarity},
          {"ngram", options.filter.ngram},
          {"rare_tokens", options.rare_tokens},
          {"temperature", options.sampling.temperature},
          {"beam", nullptr},
          {"vote", options.choice.vote},
          {"margin", given(options.choice.margin)},
          {"support", given(options.choice.support)},
          {"best", given(options.choice.best)},
          {"written", written},
          {"counts", {{"drawn", counts.drawn}, {"kept", counts.kept}, {"rejected", rejected}}},
          {"next", options.sampling.start + counts.drawn},
          {"seconds", seconds}};
}

bool is_tsv(const std::string& out) {
  const auto suffix = std::filesystem::path(out).extension();
  if (out != "-" && suffix != ".tsv" && suffix != ".jsonl") {
    throw UserError(out + ": samples are written as .jsonl or .tsv");
  }
  return suffix == ".tsv";
}

bool has_own_step(const Bundle& bundle) { return bundle.architecture == "recurrent" && bundle.has(STEP_WEIGHTS); }

// The library that runs the bundle, or our own step where it is asked for and can be had; sets the default batch.
template <class Real>
std::unique_ptr<Backend<Real>> open(Options& options, const Bundle& bundle) {
  const bool own = options.step == "own" && has_own_step(bundle);
  if (options.sampling.slots == 0) options.sampling.slots = own ? SLOTS_OF_OWN : SLOTS_OF_GRAPH;
  return own ? make_own_backend<Real>(bundle) : make_backend<Real>(bundle, true);
}

template <class Real>
std::unique_ptr<Generator> open_network(Options& options, const Bundle& bundle) {
  return make_generator<Real>(bundle, open<Real>(options, bundle));
}

std::unique_ptr<Generator> open_generator(Options& options, const Bundle& bundle) {
  if (!bundle.is_grammar()) {
    return bundle.dtype == "float64" ? open_network<double>(options, bundle) : open_network<float>(options, bundle);
  }
  if (options.sampling.slots == 0) options.sampling.slots = SLOTS_OF_GRAMMAR;
  return make_grammar(bundle);
}

template <class Real>
std::unique_ptr<Predictor> open_recurrent(Options& options, const Bundle& bundle) {
  return make_predictor<Real>(bundle, open<Real>(options, bundle));
}

std::unique_ptr<Predictor> open_predictor(Options& options, const Bundle& bundle) {
  if (options.answering.beam > 1 && options.sampling.slots == 0) options.sampling.slots = SLOTS_OF_BEAM;
  if (!bundle.is_transformer()) {
    return bundle.dtype == "float64" ? open_recurrent<double>(options, bundle) : open_recurrent<float>(options, bundle);
  }
  if (options.sampling.slots == 0) options.sampling.slots = SLOTS_OF_GRAPH;
  return make_transformer(bundle);
}

// Every draw as it was made.
int run_raw(Options& options, const Bundle& bundle) {
  if (!options.draws || options.count || !options.filters.empty() || options.choice.made() || is_tsv(options.out)) {
    throw UserError("--raw writes the draws of --draws as .jsonl, without filters or choices");
  }
  const auto generator = open_generator(options, bundle);
  options.sampling.stop = options.sampling.start + *options.draws;
  const Claim claim(options.out);
  Output output(options.out);
  generator->sample(options.sampling, [&](Draw&& draw) {
    output.line(as_json(draw));
    return !interrupted;
  });
  if (interrupted) return interrupted_code();
  output.finish();
  return 0;
}

// The first column of a file, or of standard input: a source a line, tokens with blanks between them.
std::vector<Tokens> read_sources(const std::string& input, const std::vector<std::string>& vocabulary) {
  std::map<std::string, std::int32_t> ids;
  for (std::size_t id = SPECIALS; id < vocabulary.size(); ++id) ids[vocabulary[id]] = static_cast<std::int32_t>(id);
  std::ifstream file;
  std::error_code none;
  if (input != "-") file.open(input);
  if (!file || std::filesystem::is_directory(input, none)) throw UserError(input + ": cannot be read");
  std::istream& stream = input == "-" ? std::cin : file;
  std::vector<Tokens> sources;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line.substr(0, line.find('\t')));
    Tokens source;
    for (std::string word; words >> word;) {
      const auto found = ids.find(word);
      if (found == ids.end()) {
        throw UserError(input + ", line " + std::to_string(sources.size() + 1) + ": token '" + word +
                        "' is not in the vocabulary");
      }
      source.push_back(found->second);
    }
    if (source.empty()) throw UserError(input + ", line " + std::to_string(sources.size() + 1) + ": no tokens");
    sources.push_back(std::move(source));
  }
  if (stream.bad()) throw UserError(input + ": cannot be read to its end");
  return sources;
}

// How wide a beam is, and how many answers are wanted of it.
void read_answering(Options& options) {
  auto& how = options.answering;
  how.best = options.choice.best.value_or(1);
  const std::int64_t asked = options.beam.value_or(1);
  if (how.best > WIDEST) {
    throw UserError("--best " + std::to_string(how.best) + ": expected a number from 1 to " + with_commas(WIDEST));
  }
  if (asked > 1 && asked < how.best) {
    throw UserError("--best " + std::to_string(how.best) + " needs a beam as wide: leave out --beam " +
                    std::to_string(asked));
  }
  how.beam = std::max(how.best, asked);
}

// A predictor's answers, in the order of the sources.
int run_predictor(Options& options, const Bundle& bundle) {
  const bool tsv = is_tsv(options.out);
  read_answering(options);
  const auto sources = read_sources(options.input, bundle.vocabulary);
  if (options.raw && tsv) throw UserError("--raw writes .jsonl");
  check_writable(options.out);
  const auto predictor = open_predictor(options, bundle);
  options.answering.slots = options.sampling.slots, options.answering.workers = options.sampling.workers;
  const auto found = answers(bundle, *predictor, sources, options.answering);
  catch_signals();  // until now a signal ends the work at once; what is written is written whole
  Output output(options.out);
  const Spelling spelling(bundle.vocabulary);
  for (std::size_t k = 0; k < sources.size(); ++k) {
    for (std::size_t rank = 1; rank <= found[k].size(); ++rank) {
      const Answer& answer = found[k][rank - 1];
      output.line(options.raw ? as_json(k, answer)
                  : tsv       ? spelling.as_tsv(sources[k], answer.target)
                              : spelling.as_json(sources[k], answer, rank));
    }
  }
  output.finish();
  return 0;
}

std::vector<std::string> filter_names(const Options& options) {
  std::vector<std::string> names;
  for (const auto& given : options.filters) {
    for (const auto& name : split(given, ',')) names.push_back(name);
  }
  return names;
}

// Draws until enough is kept, or a signal comes, and hands on what is kept. Throws ExhaustedError: that cannot be had.
void draw_kept(Generator& generator, const Options& options, Filter& filter,
               const std::function<void(Sample&&)>& keep) {
  Progress progress(options.count.value_or(options.draws.value_or(0)));
  std::int64_t last = 0;
  generator.sample(options.sampling, [&](Draw&& draw) {
    if (interrupted) return false;
    if (!options.draws && filter.counts.drawn - last >= PATIENCE) {
      std::string passes;
      for (const auto& name : filter_names(options)) passes += (passes.empty() ? "" : ", ") + name;
      throw ExhaustedError(with_commas(PATIENCE) + " draws in a row gave no sample that passes " +
                           (passes.empty() ? "as well-formed" : passes) + ": " + filter.counts.text());
    }
    auto pair = filter.keep(draw);
    progress.update(filter.counts, options.count.has_value());
    if (!pair) return true;
    last = filter.counts.drawn;
    keep({draw.index, std::move(pair->first), std::move(pair->second), draw.log_prob, std::move(draw.prototypes), {}});
    return !options.count || filter.counts.kept < *options.count;
  });
}

int run(Options& options, const Bundle& bundle) {
  const auto began = Clock::now();
  const Training training(bundle.pool);
  const FilterOptions drawing = options.choice.drawing(options.filter);
  Filter filter(drawing, training);
  options.sampling.unwanted = filter.unwanted();
  options.sampling.stop = options.draws ? options.sampling.start + *options.draws : std::int64_t{1} << 62;
  const bool tsv = is_tsv(options.out);
  const Spelling spelling(bundle.vocabulary);
  const auto generator = open_generator(options, bundle);
  Claim claim(options.out);
  Output output(options.out);
  const auto write = [&](const Sample& one) {
    output.line(tsv ? spelling.as_tsv(one.source, one.target) : spelling.as_json(one));
  };
  std::vector<Sample> kept;
  const Counts& counts = filter.counts;
  std::string stopped;  // what ended the run early, though there are samples
  try {
    draw_kept(*generator, options, filter, [&](Sample&& one) {
      if (options.choice.made()) kept.push_back(std::move(one));
      else write(one);
    });
  } catch (const ExhaustedError& error) {
    if (counts.kept == 0) throw;
    stopped = error.what();
  }
  if (interrupted && counts.kept == 0) {
    std::cerr << "interrupted before any sample was kept; nothing was written\n";
    return interrupted_code();
  }
  const auto chosen = options.choice.made() ? options.choice.of(std::move(kept), options.filter, training)
                                            : std::vector<Sample>{};
  for (const auto& one : chosen) write(one);
  const auto written = options.choice.made() ? static_cast<std::int64_t>(chosen.size()) : counts.kept;
  if (interrupted && output.is_file()) {
    const auto& kept_in = claim.keep();
    output.finish(kept_in);
    std::cerr << "interrupted; " << written << " samples are in " << kept_in.string() << ", " << options.out
              << " is as it was, --start " << options.sampling.start + counts.drawn << " goes on\n";
    return interrupted_code();
  }
  output.finish();
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  std::cerr << counts.text();
  if (options.choice.made()) std::cerr << "; " << written << " chosen";
  std::cerr << " (" << static_cast<std::int64_t>(static_cast<double>(counts.drawn) / seconds) << " draws/s, "
            << options.sampling.workers << " threads, " << seconds << " s)\n";
  if (output.is_file()) {
    Output record(options.out + ".run.json");
    const auto content = record_of(options, filter_names(options), counts, written, seconds);
    record.line(content.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
    record.finish();
  }
  if (interrupted) {
    std::cerr << "interrupted; " << written << " samples written, --start " << options.sampling.start + counts.drawn
              << " goes on\n";
    return interrupted_code();
  }
  if (!stopped.empty()) throw ExhaustedError(stopped + "; " + with_commas(written) + " samples are in " + options.out);
  return 0;
}

// What golden draws are made by: our own step, if the bundle has its weights, and the graph, or the one asked for.
std::vector<std::string> steps_of(const Options& options, const Bundle& bundle) {
  if (std::count(options.given.begin(), options.given.end(), "--step") > 0) return {options.step};
  if (bundle.is_grammar()) return {"rules"};
  return has_own_step(bundle) ? std::vector<std::string>{"own", "graph"} : std::vector<std::string>{"graph"};
}

// The golden draws, or answers, again.
int run_verify(const Options& options, const Bundle& bundle) {
  const Golden golden(bundle);
  std::vector<Verified> rows;
  for (const auto& step : steps_of(options, bundle)) {
    Options one = options;
    one.step = step;
    if (!bundle.predicts) {
      const auto generator = open_generator(one, bundle);
      rows.push_back(golden.verify(step, *generator, one.sampling.slots, one.sampling.workers));
    } else {
      const auto predictor = open_predictor(one, bundle);
      rows.push_back(golden.verify(step, *predictor, one.sampling.slots, one.sampling.workers));
    }
  }
  std::cout << table(rows);
  for (const auto& row : rows) {
    if (row.passed()) continue;
    std::ostringstream what;
    what << options.bundle << ": " << row.runtime << ": not what was exported: ";
    if (row.equal < row.samples) what << row.equal << " of " << row.samples << " samples are the golden ones";
    else what << "log-probabilities differ by " << row.largest;
    throw UserError(what.str());
  }
  return 0;
}

// What a predictor has no use for is an error, and so is a generator's --input.
void check_options(const Options& options, const Bundle& bundle) {
  const bool predicts = bundle.predicts;
  if (bundle.is_grammar() && std::count(options.given.begin(), options.given.end(), "--step") > 0) {
    throw UserError("a grammar has no use for --step");
  }
  if (options.verify) {
    const std::set<std::string> of_verify = {"bundle", "--verify", "--batch", "--workers", "--step", "--trust-code"};
    for (const auto& name : options.given) {
      if (of_verify.count(name) == 0) throw UserError("--verify has no use for " + name);
    }
    return;
  }
  const std::set<std::string> of_predictors = {"bundle", "--input", "--output", "--batch", "--workers",
                                               "--step", "--raw", "--trust-code", "--beam", "--best"};
  for (const auto& name : options.given) {
    if (predicts && of_predictors.count(name) == 0) throw UserError("a predictor has no use for " + name);
    if (!predicts && (name == "--input" || name == "--beam")) throw UserError("a generator has no use for " + name);
  }
  if (predicts && options.input.empty()) throw UserError("say what to predict from: --input FILE, or -");
  if (!predicts && !options.count && !options.draws) {
    throw UserError("say how many samples to keep (-n) or how many draws to make (--draws)");
  }
}

int dispatch(Options& options, const Bundle& bundle) {
  if (options.verify) return run_verify(options, bundle);
  if (bundle.predicts) return run_predictor(options, bundle);  // has nothing to save, so a signal ends it
  catch_signals();
  return options.raw ? run_raw(options, bundle) : run(options, bundle);
}

int dispatch(Options& options) {
#ifdef RUNS_CODE
  if (!options.trust_code) {
    throw UserError(options.bundle + ": TorchScript is code, which loading runs: use compgen-sample, or say --trust-code if you " +
                    "trust whoever made the bundle");
  }
#endif
  options.filter = read_filters(options);
  const Bundle bundle(options.bundle);
  check_options(options, bundle);
  for (const auto& name : options.rare_tokens) {
    const auto found = std::find(bundle.vocabulary.begin() + SPECIALS, bundle.vocabulary.end(), name);  // no special symbol
    if (found == bundle.vocabulary.end()) throw UserError("--rare-token " + name + ": no token of the vocabulary");
    options.filter.rare_tokens.push_back(static_cast<std::int32_t>(found - bundle.vocabulary.begin()));
  }
  options.sampling.temperature = bundle.temperature;
  read_temperature(options.temperature, options.sampling.temperature);
  return dispatch(options, bundle);
}

const CLI::Range& positive() {
  static const CLI::Range range(std::int64_t{1}, std::int64_t{1} << 61);
  return range;
}

// What is kept and where it goes.
void add_choosing_options(CLI::App& app, Options& options) {
  app.add_option("bundle", options.bundle, "A folder that `cgen export` wrote.")->required();
  app.add_option("-n", options.count, "Stop when so many samples are kept.")->check(positive());
  app.add_option("--draws", options.draws, "Make so many draws, however many are kept.")->check(positive());
  app.add_option("-o,--output", options.out, "A .jsonl or .tsv file, or -.")->capture_default_str();
  app.add_option("--filter", options.filters, "Some of novel, unique, rare, with commas between them.");
  app.add_option("--novelty", options.novelty, "novel: both sides unseen, the source, or the pair.")
      ->check(CLI::IsMember({"both", "source", "pair"}));
  app.add_option("--rarity", options.rarity, "rare: at most this share of training examples holds the n-gram.")
      ->check(CLI::Range(1e-300, 1.0));
  app.add_option("--ngram", options.ngram, "rare: length of n-grams.")->check(CLI::Range(1, 1000));
  app.add_option("--rare-token", options.rare_tokens, "rare: holds this token; may be repeated, for one of several.")
      ->allow_extra_args(false);
  app.add_option("--best", options.choice.best,
                 "Write the first so many only, most probable or by votes first; of predictors: answers a source.")
      ->check(positive());
  app.add_flag("--vote", options.choice.vote, "One target for each source, the one drawn most often.");
  app.add_option("--margin", options.choice.margin, "With --vote: the least number of votes it must win by.")
      ->check(positive());
  app.add_option("--support", options.choice.support, "The least share of samples with each new pair of neighbours.")
      ->check(CLI::Range(0.0, 1.0));
}

// How it is drawn or answered.
void add_running_options(CLI::App& app, Options& options) {
  app.add_option("--temperature", options.temperature, "Of source and target halves, T or T,T; 0 is greedy.");
  app.add_option("--seed", options.sampling.seed, "Names a stream of samples.")->capture_default_str();
  app.add_option("--start", options.sampling.start, "The first address of the stream to draw.")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 61));
  app.add_option("--batch", options.sampling.slots,
                 "Rows decoded at a time by each worker; by default " + std::to_string(SLOTS_OF_OWN) +
                     " for our own step, " + std::to_string(SLOTS_OF_GRAPH) + " for a graph.")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16));
  app.add_option("--beam", options.beam, "Predictors: hypotheses kept a source; 1 is greedy decoding.")
      ->check(CLI::Range(std::int64_t{1}, WIDEST));
  app.add_option("--input", options.input, "Predictors: a file of sources, a line each, or -.");
  app.add_flag("--raw", options.raw, "Write every draw as it was made, as token ids, to compare runtimes.");
  app.add_flag("--verify", options.verify, "Make the bundle's golden draws, or answers, again, and compare.");
  app.add_option("--step", options.step, "What decodes: own (our code, where the bundle has its weights), or graph.")
      ->check(CLI::IsMember({"own", "graph"}))
      ->capture_default_str();
#ifdef RUNS_CODE
  app.add_flag("--trust-code", options.trust_code,
               "Run the code in the bundle, which can do whatever its author liked. All else in a bundle is data.");
#endif
  app.add_option("--workers", options.sampling.workers, "Threads.")->check(CLI::Range(1, 1024))->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options.sampling.workers = cores;
  CLI::App app{"New examples from a generator's bundle, as `cgen sample` gives them; or a predictor's answers."};
  add_choosing_options(app, options), add_running_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const auto* option : app.get_options()) {
    if (option->count() > 0) options.given.push_back(option->get_name());
  }
  try {
    return dispatch(options);
  } catch (const UserError& error) {
    std::cerr << "error: " << error.what() << "\n";
  } catch (const std::length_error&) {  // sizes beyond any memory
    std::cerr << "error: not enough memory; try a smaller --batch or fewer --workers\n";
  } catch (const std::bad_alloc&) {
    std::cerr << "error: not enough memory; try a smaller --batch or fewer --workers\n";
  } catch (const std::exception& error) {  // of the system: no further threads, a path that is none
    std::cerr << "error: " << error.what() << "\n";
  }
  return 2;
}
