// compgen-sample: what `cgen sample` does, without Python; and the answers of predictors.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <set>
#include <sstream>

#include "command_line.h"
#include "errors.h"
#include "interrupts.h"
#include "numbers.h"
#include "open.h"
#include "options.h"
#include "output.h"
#include "predict.h"
#include "processors.h"
#include "record.h"
#include "run.h"
#include "run_direct.h"
#include "sources.h"
#include "text.h"
#include "verify.h"

namespace {

using namespace compgen;

// What stands between commas, without spaces at its ends; it may be nothing.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.emplace_back(stripped(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

// One temperature for both halves, or two with a comma between them.
std::array<double, 2> read_temperature(const std::string& text) {
  std::vector<double> numbers;
  const auto parts = parts_of(text);
  for (const auto& part : parts) {
    if (const auto number = real_number(part)) numbers.push_back(*number);
  }
  if (numbers.size() != parts.size() || numbers.size() > 2) {
    throw UserError("--temperature " + text + ": expected one or two numbers from 0 on, for instance 0.4,0");
  }
  return {warm(numbers.front()), warm(numbers.back())};
}

// The filters of one or more --filter; what only one of them reads must not be given without it.
FilterOptions read_filters(Options& options) {
  FilterOptions filter;
  if (const auto& asked = options.prototypes; asked && *asked != "all" && *asked != "rare") {
    throw UserError("--prototypes " + *asked + ": expected all or rare");
  }
  for (const auto& given : options.filters) {
    for (const auto& name : parts_of(given)) {
      if (name.empty()) continue;
      options.filter_names.push_back(name);
      bool* const known = name == "novel"    ? &filter.novel
                          : name == "unique" ? &filter.unique
                          : name == "rare"   ? &filter.rare
                                             : nullptr;
      if (!known) throw UserError("no filter " + represented(name) + ": expected some of novel, unique, rare");
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
  const auto& novelty = options.novelty.value_or(filter.novelty);
  if (novelty != "both" && novelty != "source" && novelty != "pair") {
    throw UserError("no novelty " + represented(novelty) + ": expected both, source or pair");
  }
  if (!filter.rare && (options.rarity || options.ngram || !options.rare_tokens.empty())) {
    throw UserError("--rarity, --ngram and --rare-token are for the filter rare: add --filter rare");
  }
  if (!options.rare_tokens.empty() && (options.rarity || options.ngram)) {
    throw UserError("--rare-token names what is rare: leave out --rarity and --ngram");
  }
  const double rarity = options.rarity.value_or(filter.rarity);
  if (!(rarity > 0 && rarity <= 1)) {
    throw UserError("rarity " + shown(rarity) + ": expected a share of the training examples, above 0 and at most 1");
  }
  filter.novelty = novelty;
  filter.rarity = rarity;
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
  std::int64_t written = 0;
  bool stopped = false;
  generator->sample(options.sampling, [&](Draw&& draw) {
    stopped = interrupted();
    if (stopped) return false;
    output.line(as_json(draw)), ++written;
    return true;
  });
  if (stopped && written == 0) throw Interrupted();
  output.finish();
  forget_record(options.out);
  if (!stopped) return 0;
  std::cerr << "interrupted; " << with_commas(written) << " draws written, --start " << options.sampling.start + written
            << " goes on\n";
  return interrupted_code();
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
    require_predictor(other);
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
  check_apart(options.out, options.input);
  Answering how = answering(options.choice.best.value_or(1), options.beam.value_or(1));
  const std::string text = read_all(options.input);
  const Form form{has_columns(options.input, text), options.raw};
  const auto sources = parse_sources(text, named(options.input), bundle.vocabulary, form);
  if (options.raw && tsv) throw UserError("--raw writes .jsonl");
  check_writable(options.out);
  how.slots = options.sampling.slots, how.workers = options.sampling.workers;
  const auto predictor = open_predictor(bundle, options.step, how.beam, how.slots);
  const Others others = open_others(options, bundle, how);
  std::vector<Member> members{{bundle, *predictor}};
  for (std::size_t k = 0; k < others.bundles.size(); ++k) members.push_back({*others.bundles[k], *others.predictors[k]});
  const auto found = answers_to_those_with_tokens(sources, [&](const std::vector<Tokens>& asked) {
    return members.size() > 1 ? answers_together(members, asked, how) : answers(bundle, *predictor, asked, how);
  });
  catch_signals();  // until now a signal ends the work at once; what is written is written whole
  Output output(options.out);
  const Spelling spelling(bundle.vocabulary);
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (sources[k].empty()) output.line(tsv ? "" : spelling.as_json(sources[k]));
    for (std::size_t rank = 1; rank <= found[k].size(); ++rank) {
      const Answer& answer = found[k][rank - 1];
      output.line(options.raw ? as_json(k, answer)
                  : tsv       ? spelling.as_tsv(sources[k], answer.target)
                              : spelling.as_json(sources[k], answer, rank));
    }
  }
  output.finish();
  forget_record(options.out);
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
  if (bundle.is_grammar() && options.gives("--step") && !options.otherwise) {
    throw UserError("a grammar has no use for --step");
  }
  if (options.otherwise && !options.direct) throw UserError("--otherwise answers what a generator cannot: add --direct");
  if (options.verify) {
    const std::set<std::string> of_verify = {"bundle", "--verify", "--batch", "--workers", "--step", "--trust-code"};
    for (const auto& name : options.given) {
      if (of_verify.count(name) == 0) throw UserError("--verify has no use for " + name);
    }
    return;
  }
  if (options.direct) return check_direct(options, bundle);
  if (predicts && options.input.empty() && (options.count || options.draws)) require_generator(bundle);
  if (!predicts && !options.input.empty()) require_predictor(bundle);
  const std::set<std::string> of_predictors = {"bundle", "--input", "--output", "--batch", "--workers",
                                               "--step", "--raw", "--trust-code", "--beam", "--best", "--with"};
  for (const auto& name : options.given) {
    if (predicts && of_predictors.count(name) == 0) throw UserError("a predictor has no use for " + name);
    if (!predicts && (name == "--beam" || name == "--with")) throw UserError("a generator has no use for " + name);
  }
  if (predicts && options.input.empty()) throw UserError("say what to predict from: --input FILE, or -");
  if (!predicts && !options.count && !options.draws) {
    throw UserError("say how many samples to keep (-n) or how many draws to make (--draws)");
  }
}

int dispatch(Options& options, const Bundle& bundle) {
  if (options.verify) return run_verify(options, bundle);
  if (options.direct) return run_direct(options, bundle);
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
  options.filter.rare_tokens = encoded(options.rare_tokens, bundle.vocabulary);
  options.sampling.temperature = options.temperature ? read_temperature(*options.temperature) : bundle.temperature;
  return dispatch(options, bundle);
}

// What is kept and where it goes.
void add_choosing_options(CLI::App& app, Options& options) {
  app.add_option("bundle", options.bundle, "A folder that `cgen export` wrote.")->required();
  add_whole(app, "-n", options.count, "Stop when so many samples are kept.", 1, MOST_ADDRESSES);
  add_whole(app, "--draws", options.draws, "Make so many draws, kept or not; with -n, at most so many.", 1,
            MOST_ADDRESSES);
  app.add_option("-o,--output", options.out, "A .jsonl or .tsv file (also with .gz), or -.")->capture_default_str();
  app.add_option("--filter", options.filters, "Some of novel, unique, rare, with commas between them.")
      ->allow_extra_args(false);
  app.add_option("--novelty", options.novelty, "novel: both sides unseen, the source, or the pair: both, source, pair.");
  const auto take_rarity = [&options](const std::string& text) {
    options.rarity = real_number("--rarity", text, Bounds{});  // which is told of once it is known to be used
  };
  app.add_option_function<std::string>("--rarity", take_rarity,
                                       "rare: at most this share of training examples holds the n-gram.")
      ->type_name("FLOAT");
  add_whole(app, "--ngram", options.ngram, "rare: length of n-grams.", 1, MOST_ADDRESSES);
  app.add_option("--rare-token", options.rare_tokens, "rare: holds this token; may be repeated, for one of several.")
      ->allow_extra_args(false);
  app.add_option("--prototypes", options.prototypes, "rare: draw only from prototypes of which one has a rare token; or all.");
  add_whole(app, "--best", options.choice.best,
            "Write the first so many only, most probable or by votes first; of predictors: answers a source.", 1,
            MOST_ADDRESSES);
  app.add_flag("--vote", options.choice.vote, "One target for each source, the one drawn most often.");
  add_whole(app, "--margin", options.choice.margin, "With --vote: the least number of votes it must win by.", 1,
            MOST_ADDRESSES);
  const auto take_support = [&options](const std::string& text) {
    options.choice.support = real_number("--support", text, Bounds{0, 1});
  };
  app.add_option_function<std::string>("--support", take_support,
                                       "The least share of samples with each new pair of neighbours.")
      ->type_name("FLOAT");
}

// How it is drawn or answered.
void add_running_options(CLI::App& app, Options& options) {
  app.add_option("--temperature", options.temperature, "Of source and target halves, T or T,T; 0 is greedy.");
  add_whole(app, "--seed", options.sampling.seed, "Names a stream of samples.", 0, ~std::uint64_t{0})
      ->default_str(std::to_string(options.sampling.seed));
  add_whole(app, "--start", options.sampling.start, "The first address of the stream to draw.", 0, MOST_ADDRESSES);
  add_whole(app, "--batch", options.sampling.slots,
            "Rows decoded at a time by each worker; by default " + std::to_string(SLOTS_OF_OWN) +
                " for our own step, " + std::to_string(SLOTS_OF_GRAPH) + " for a graph.",
            1, MOST_SLOTS);
  add_whole(app, "--beam", options.beam, "Predictors: hypotheses kept a source; 1 is greedy decoding.", 1, WIDEST);
  app.add_option("--with", options.others, "Predictors: another bundle, to answer together; may be repeated.")
      ->allow_extra_args(false);
  app.add_option("--input", options.input, "Predictors, and --direct: a file of sources, a line each, or -.");
  app.add_flag("--direct", options.direct, "Let a generator answer the sources of --input, as in `cgen predict`.");
  app.add_option("--otherwise", options.otherwise, "With --direct: a predictor's bundle, for sources without an answer.");
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
  add_whole(app, "--workers", options.sampling.workers, "Threads.", 1, MOST_WORKERS)
      ->default_str(std::to_string(options.sampling.workers));
  app.add_option("--model", options.model, "The name of the bundle in the record.")->group("");  // `cgen` gives it
  app.set_version_flag("--version", "compgen-sample " COMPGEN_VERSION, "Print the version and stop.");
}

// An option's name, of those that --help leaves out, too.
std::string name_of(const CLI::Option& option) {
  return option.get_group().empty() ? "--" + option.get_lnames().front() : option.get_name();
}

int called(int argc, char** argv) {
  Options options;
  options.step = DEFAULT_STEP;
  options.sampling.workers = processors();
  CLI::App app{"New examples from a generator's bundle, as `cgen sample` gives them; or a predictor's answers."};
  add_choosing_options(app, options), add_running_options(app, options);
  if (const auto code = parse(app, argc, argv)) return *code;
  for (const auto* option : app.get_options()) {
    if (option->count() > 0) options.given.push_back(name_of(*option));
  }
  return dispatch(options);
}

// A file that is opened would take the number of a stream that the caller has closed, and messages would be written
// into it. What takes it instead cannot be used as the stream is, so that results for a closed one stay an error.
void fill_closed_streams() {
  for (const auto& [stream, unusable] : {std::pair(STDIN_FILENO, O_WRONLY), std::pair(STDOUT_FILENO, O_RDONLY),
                                         std::pair(STDERR_FILENO, O_RDONLY)}) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) static_cast<void>(::open("/dev/null", unusable));
  }
}

}  // namespace

int main(int argc, char** argv) {
  fill_closed_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // so that a file beyond its limit of size is an error of writing, as in Python
  try {
    const int code = called(argc, argv);
    // Of --help and --verify; samples have been written to its descriptor.
    if (!std::cout.flush()) throw UserError(std::string("standard output: cannot be written: ") + std::strerror(errno));
    return code;
  } catch (const Interrupted&) {
    std::cerr << "interrupted\n";
    return interrupted_code();
  } catch (const UserError& error) {
    tell(error.what());
  } catch (const std::length_error&) {  // sizes beyond any memory
    std::cerr << "error: not enough memory; try a smaller --batch or fewer --workers\n";
  } catch (const std::bad_alloc&) {
    std::cerr << "error: not enough memory; try a smaller --batch or fewer --workers\n";
  } catch (const std::exception& error) {  // of the system: no further threads, a path that is none
    tell(error.what());
  }
  return 2;
}
