// compgen-sample: what `cgen sample` does, without Python; and the answers of predictors.

#include <CLI/CLI.hpp>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>

#include "errors.h"
#include "interrupts.h"
#include "open.h"
#include "options.h"
#include "output.h"
#include "predict.h"
#include "run.h"
#include "sources.h"
#include "text.h"
#include "verify.h"

namespace {

using namespace compgen;

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
FilterOptions read_filters(Options& options) {
  FilterOptions filter;
  for (const auto& given : options.filters) {
    for (const auto& name : split(given, ',')) {
      options.filter_names.push_back(name);
      bool* const known = name == "novel"    ? &filter.novel
                          : name == "unique" ? &filter.unique
                          : name == "rare"   ? &filter.rare
                                             : nullptr;
      if (!known) throw UserError("no filter '" + name + "': expected some of novel, unique, rare");
      *known = true;
    }
  }
  if (!filter.novel && options.novelty) throw UserError("--novelty is for the filter novel: add --filter novel");
  if (!filter.rare && options.prototypes.value_or("all") != "all") {
    throw UserError("--prototypes is for the filter rare: add --filter rare");
  }
  if (options.prototypes.value_or("all") != "all" && options.ngram.value_or(1) > 1) {
    throw UserError("--prototypes rare is for single tokens: leave out --ngram");
  }
  if (!filter.rare && (options.rarity || options.ngram || !options.rare_tokens.empty())) {
    throw UserError("--rarity, --ngram and --rare-token are for the filter rare: add --filter rare");
  }
  if (!options.rare_tokens.empty() && (options.rarity || options.ngram)) {
    throw UserError("--rare-token names what is rare: leave out --rarity and --ngram");
  }
  filter.novelty = options.novelty.value_or(filter.novelty);
  filter.rarity = options.rarity.value_or(filter.rarity);
  filter.ngram = options.ngram.value_or(filter.ngram);
  filter.prototypes = options.prototypes.value_or(filter.prototypes);
  return filter;
}

// Every draw as it was made.
int run_raw(Options& options, const Bundle& bundle) {
  if (!options.draws || options.count || !options.filters.empty() || options.choice.made() || options.resume ||
      writes_tsv(options.out)) {
    throw UserError("--raw writes the draws of --draws as .jsonl, without filters, choices or --resume");
  }
  const auto generator = open_generator(bundle, options.step, options.sampling.slots);
  options.sampling.stop = options.sampling.start + *options.draws;
  const Claim claim(options.out);
  Output output(options.out);
  generator->sample(options.sampling, [&](Draw&& draw) {
    output.line(as_json(draw));
    return !interrupted();
  });
  if (interrupted()) return interrupted_code();
  output.finish();
  return 0;
}

// The predictors that --with names, opened; they must know the tokens that the first one knows.
struct Others {
  std::vector<std::unique_ptr<Bundle>> bundles;
  std::vector<std::unique_ptr<Predictor>> predictors;
};

Others open_others(const Options& options, const Bundle& bundle, Answering& how) {
  Others others;
  for (const auto& name : options.others) {
    others.bundles.push_back(std::make_unique<Bundle>(name));
    const Bundle& other = *others.bundles.back();
    if (!other.predicts) throw UserError(name + ": a generator, expected a predictor");
    if (other.vocabulary != bundle.vocabulary) {
      throw UserError("--with " + name + ": its vocabulary differs from that of " + options.bundle +
                      ": `cgen predict --with` can do this");
    }
    others.predictors.push_back(open_predictor(other, options.step, how.beam, how.slots));
  }
  return others;
}

// A predictor's answers, or those of several together, in the order of the sources.
int run_predictor(Options& options, const Bundle& bundle) {
  const bool tsv = writes_tsv(options.out);
  Answering how = answering(options.choice.best.value_or(1), options.beam.value_or(1));
  const auto sources = parse_sources(read_all(options.input), options.input, bundle.vocabulary, options.raw);
  if (options.raw && tsv) throw UserError("--raw writes .jsonl");
  check_writable(options.out);
  how.slots = options.sampling.slots, how.workers = options.sampling.workers;
  const auto predictor = open_predictor(bundle, options.step, how.beam, how.slots);
  const Others others = open_others(options, bundle, how);
  std::vector<Member> members{{bundle, *predictor}};
  for (std::size_t k = 0; k < others.bundles.size(); ++k) members.push_back({*others.bundles[k], *others.predictors[k]});
  const auto found =
      members.size() > 1 ? answers_together(members, sources, how) : answers(bundle, *predictor, sources, how);
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

// What golden draws are made by: our own step, if the bundle has its weights, and the graph, or the one asked for.
std::vector<std::string> steps_of(const Options& options, const Bundle& bundle) {
  if (options.gives("--step")) return {options.step};
  if (bundle.is_grammar()) return {"rules"};
  return has_own_step(bundle) ? std::vector<std::string>{"own", "graph"} : std::vector<std::string>{"graph"};
}

// The golden draws, or answers, again.
int run_verify(const Options& options, const Bundle& bundle) {
  const Golden golden(bundle);
  std::vector<Verified> rows;
  for (const auto& step : steps_of(options, bundle)) {
    std::int64_t slots = options.sampling.slots;
    if (!bundle.predicts) {
      const auto generator = open_generator(bundle, step, slots);
      rows.push_back(golden.verify(step, *generator, slots, options.sampling.workers));
    } else {
      const auto predictor = open_predictor(bundle, step, 1, slots);
      rows.push_back(golden.verify(step, *predictor, slots, options.sampling.workers));
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
  if (bundle.is_grammar() && options.gives("--step")) {
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
                                               "--step", "--raw", "--trust-code", "--beam", "--best", "--with"};
  for (const auto& name : options.given) {
    if (predicts && of_predictors.count(name) == 0) throw UserError("a predictor has no use for " + name);
    if (!predicts && (name == "--input" || name == "--beam" || name == "--with")) throw UserError("a generator has no use for " + name);
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
  app.add_option("-o,--output", options.out, "A .jsonl or .tsv file (also with .gz), or -.")->capture_default_str();
  app.add_option("--filter", options.filters, "Some of novel, unique, rare, with commas between them.");
  app.add_option("--novelty", options.novelty, "novel: both sides unseen, the source, or the pair.")
      ->check(CLI::IsMember({"both", "source", "pair"}));
  app.add_option("--rarity", options.rarity, "rare: at most this share of training examples holds the n-gram.")
      ->check(CLI::Range(1e-300, 1.0));
  app.add_option("--ngram", options.ngram, "rare: length of n-grams.")->check(CLI::Range(1, 1000));
  app.add_option("--rare-token", options.rare_tokens, "rare: holds this token; may be repeated, for one of several.")
      ->allow_extra_args(false);
  app.add_option("--prototypes", options.prototypes, "rare: draw only from prototypes of which one has a rare token; or all.")
      ->check(CLI::IsMember({"all", "rare"}));
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
  app.add_option("--with", options.others, "Predictors: another bundle, to answer together; may be repeated.")
      ->allow_extra_args(false);
  app.add_option("--input", options.input, "Predictors: a file of sources, a line each, or -.");
  app.add_flag("--resume", options.resume,
               "Continue an interrupted run with the same options and OUT; not with --vote, --support and --best.");
  app.add_flag("--raw", options.raw, "Write every draw as it was made, as token ids; of sources, read ids.");
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

int called(int argc, char** argv) {
  Options options;
  options.step = DEFAULT_STEP;
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
  return dispatch(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return called(argc, argv);
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
