// compgen-sample: what `compgen sample` does, without Python.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "errors.h"
#include "filters.h"
#include "output.h"
#include "sampler.h"
#include "selection.h"

namespace {

using namespace compgen;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t PATIENCE = 20'000;  // draws in a row without a sample before giving up

volatile std::sig_atomic_t interrupted = 0;

struct Options {
  std::string bundle, out = "-", temperature;
  std::vector<std::string> filters;
  std::optional<std::int64_t> count, draws;
  std::optional<std::string> novelty;
  std::optional<double> rarity;
  std::optional<std::size_t> ngram;
  FilterOptions filter;
  Choice choice;
  Sampling sampling;
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
  if (!filter.rare && (options.rarity || options.ngram)) {
    throw UserError("--rarity and --ngram are for the filter rare: add --filter rare");
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

template <class Real>
int run(Options options, const Bundle& bundle) {
  const auto began = Clock::now();
  const Training training(bundle.pool);
  const FilterOptions drawing = options.choice.drawing(options.filter);
  Filter filter(drawing, training);
  options.sampling.unwanted = filter.unwanted();
  options.sampling.stop = options.draws ? options.sampling.start + *options.draws : std::int64_t{1} << 62;
  const bool tsv = std::filesystem::path(options.out).extension() == ".tsv";
  if (options.out != "-" && !tsv && std::filesystem::path(options.out).extension() != ".jsonl") {
    throw UserError(options.out + ": samples are written as .jsonl or .tsv");
  }
  const auto backend = make_backend<Real>(bundle);
  Output output(options.out);
  const auto write = [&](const Sample& one) {
    output.line(tsv ? as_tsv(one, bundle.vocabulary) : as_json(one, bundle.vocabulary));
  };
  std::vector<Sample> kept;
  std::int64_t last = 0;
  bool exhausted = false;
  {
    Progress progress(options.count.value_or(options.draws.value_or(0)));
    sample<Real>(bundle, *backend, options.sampling, [&](Draw&& draw) {
      exhausted = !options.draws && filter.counts.drawn - last >= PATIENCE;
      if (exhausted || interrupted) return false;
      auto pair = filter.keep(draw);
      progress.update(filter.counts, options.count.has_value());
      if (!pair) return true;
      last = filter.counts.drawn;
      Sample one{draw.index, std::move(pair->first), std::move(pair->second), draw.log_prob,
                 std::move(draw.prototypes), std::nullopt};
      if (options.choice.made()) {
        kept.push_back(std::move(one));
      } else {
        write(one);
      }
      return !options.count || filter.counts.kept < *options.count;
    });
  }
  const Counts& counts = filter.counts;
  if (exhausted && counts.kept == 0) {
    throw UserError("20,000 draws in a row gave no sample that passes the filters: " + counts.text());
  }
  if (interrupted && counts.kept == 0) {
    std::cerr << "interrupted before any sample was kept; nothing was written\n";
    return 130;
  }
  const auto chosen = options.choice.made() ? options.choice.of(std::move(kept), options.filter, training)
                                            : std::vector<Sample>{};
  for (const auto& one : chosen) write(one);
  output.finish();
  const auto written = options.choice.made() ? static_cast<std::int64_t>(chosen.size()) : counts.kept;
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  std::cerr << counts.text();
  if (options.choice.made()) std::cerr << "; " << written << " chosen";
  std::cerr << " (" << static_cast<std::int64_t>(static_cast<double>(counts.drawn) / seconds) << " draws/s, "
            << options.sampling.workers << " threads, " << seconds << " s)\n";
  if (options.out != "-") {
    std::vector<std::string> names;
    for (const auto& given : options.filters) {
      for (const auto& name : split(given, ',')) names.push_back(name);
    }
    Output record(options.out + ".run.json");
    record.line(record_of(options, names, counts, written, seconds).dump(1));
    record.finish();
  }
  if (interrupted) {
    std::cerr << "interrupted; " << written << " samples written, --start " << options.sampling.start + counts.drawn
              << " goes on\n";
    return 130;
  }
  if (exhausted) throw UserError("20,000 draws in a row gave no further sample: " + counts.text());
  return 0;
}

int dispatch(Options options) {
  options.filter = read_filters(options);
  if (!options.count && !options.draws) {
    throw UserError("say how many samples to keep (-n) or how many draws to make (--draws)");
  }
  const Bundle bundle(options.bundle);
  options.sampling.temperature = bundle.temperature;
  read_temperature(options.temperature, options.sampling.temperature);
  return bundle.dtype == "float64" ? run<double>(options, bundle) : run<float>(options, bundle);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options.sampling.workers = cores;
  CLI::App app{"New examples from a generator's bundle: the samples of `compgen sample`, without Python."};
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1} << 61);
  app.add_option("bundle", options.bundle, "A folder that `compgen export` wrote.")->required();
  app.add_option("-n", options.count, "Stop when so many samples are kept.")->check(positive);
  app.add_option("--draws", options.draws, "Make so many draws, however many are kept.")->check(positive);
  app.add_option("-o,--output", options.out, "A .jsonl or .tsv file, or -.")->capture_default_str();
  app.add_option("--filter", options.filters, "Some of novel, unique, rare, with commas between them.");
  app.add_option("--novelty", options.novelty, "novel: both sides unseen, the source, or the pair.")
      ->check(CLI::IsMember({"both", "source", "pair"}));
  app.add_option("--rarity", options.rarity, "rare: at most this share of training examples holds the n-gram.")
      ->check(CLI::Range(1e-300, 1.0));
  app.add_option("--ngram", options.ngram, "rare: length of n-grams.")->check(CLI::Range(1, 1000));
  app.add_option("--best", options.choice.best, "Write the first so many only, most probable or by votes first.")
      ->check(positive);
  app.add_flag("--vote", options.choice.vote, "One target for each source, the one drawn most often.");
  app.add_option("--margin", options.choice.margin, "With --vote: the least number of votes it must win by.")
      ->check(positive);
  app.add_option("--support", options.choice.support, "The least share of samples with each new pair of neighbours.")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--temperature", options.temperature, "Of source and target halves, T or T,T; 0 is greedy.");
  app.add_option("--seed", options.sampling.seed, "Names a stream of samples.")->capture_default_str();
  app.add_option("--start", options.sampling.start, "The first address of the stream to draw.")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 61));
  app.add_option("--batch", options.sampling.slots, "Rows decoded at a time by each worker.")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16))
      ->capture_default_str();
  app.add_option("--workers", options.sampling.workers, "Threads.")->check(CLI::Range(1, 1024))->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, [](int) { interrupted = 1; });
  }
  try {
    return dispatch(options);
  } catch (const UserError& error) {
    std::cerr << "error: " << error.what() << "\n";
  } catch (const std::length_error&) {  // sizes beyond any memory
    std::cerr << "error: not enough memory; try a smaller --batch or fewer --workers\n";
  } catch (const std::bad_alloc&) {
    std::cerr << "error: not enough memory; try a smaller --batch or fewer --workers\n";
  }
  return 2;
}
