#include "run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <unordered_map>

#include "errors.h"
#include "interrupts.h"
#include "open.h"
#include "output.h"
#include "partial.h"
#include "record.h"
#include "text.h"

namespace compgen {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t PATIENCE = 20'000;  // draws in a row without a sample before giving up

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
              << static_cast<std::int64_t>(static_cast<double>(counts.drawn - before_) / seconds) << " draws/s, "
              << counts.kept << " kept" << (terminal_ ? "   " : "\n") << std::flush;
  }
  // Counts draws from here on.
  void begin(const Counts& counts) { before_ = counts.drawn; }

 private:
  std::int64_t goal_, before_ = 0;
  bool terminal_ = isatty(2) != 0, shown_ = false;
  Clock::time_point began_ = Clock::now(), last_ = Clock::now();
};

// What came of drawing.
struct End {
  std::int64_t written = 0;
  std::int64_t alone = 0;  // after a vote, samples whose source was drawn only once
  double seconds = 0;
  bool interrupted = false;
  std::string exhausted;  // why there are no more, though there are some
};

// Whether the training examples decide what is kept. Else the first sample need not wait for their tables.
bool asks_training(const Options& options) {
  return options.filter.novel || options.filter.rare || options.choice.support.has_value();
}

class Run {
 public:
  Run(const Options& options, const Bundle& bundle)
      : options_(options),
        training_(asks_training(options) ? Training(bundle.pool) : Training()),
        bundle_(bundle),
        spelling_(bundle.vocabulary),
        filter_(options.choice.drawing(options.filter), training_, bundle.pool.targets()),
        pool_(drawn_from()),
        tsv_(writes_tsv(options.out)),
        asked_(asked_of(options, bundle)) {}

  int operator()() {
    const bool resumable = options_.out != "-" && !options_.choice.made() && !is_packed(options_.out) &&
                           !is_stream(options_.out);
    if (options_.resume && !resumable) {
      throw UserError(
          "--resume is for samples that are written to a file as they are drawn: "
          "not for standard output or .gz, nor with --vote, --support or --best");
    }
    if (options_.resume && is_finished(options_.out, asked_)) {
      forget_journal(options_.out);
      std::cerr << options_.out << " is finished: nothing to continue\n";
      return 0;
    }
    const std::string step = step_of(bundle_, asked_step());
    slots_ = options_.sampling.slots;
    const auto generator = open_generator(bundle_, step, slots_);
    generator->check(options_.sampling);  // an error now, before the samples of an interrupted run are dropped
    return resumable ? to_file(*generator, step) : to_stream(*generator);
  }

 private:
  // The step that is asked for; by default an interrupted run keeps its own, so that its probabilities stay the same to
  // the last digit.
  std::string asked_step() const {
    if (!options_.resume || options_.gives("--step")) return options_.step;
    return step_of_interrupted(options_.out).value_or(options_.step);
  }

  // The prototypes to draw from, if not all; throws where there is nothing that is rare.
  std::optional<Pool> drawn_from() const {
    filter_.require_rare(bundle_.vocabulary.size());
    return filter_.pool(bundle_.pool);
  }

  std::string line(const Sample& one) const {
    return tsv_ ? spelling_.as_tsv(one.source, one.target) : spelling_.as_json(one);
  }

  // Writes samples as they come, so that an interrupted run can be resumed.
  int to_file(Generator& generator, const std::string& step) {
    PartialFile partial(options_.out, resumable_of(options_, bundle_), step, options_.resume);
    filter_.counts = partial.counts;
    if (options_.filter.unique) remember(partial);
    End end;
    const auto save = [&] {
      partial.counts = filter_.counts;
      partial.save_now_and_then();
    };
    try {
      draw(generator, end, [&](Sample&& one) { partial.line(line(one)); }, save);
    } catch (const ExhaustedError& error) {
      if (filter_.counts.kept == 0) {
        partial.forget();
        throw;
      }
      end.exhausted = error.what();
    }
    partial.counts = filter_.counts;
    end.written = filter_.counts.kept;
    if (end.interrupted) {
      partial.save();
      std::cerr << "interrupted; " << with_commas(end.written) << " samples are in " << partial.path().string()
                << ", --resume goes on\n";
      return interrupted_code();
    }
    if (end.written == 0) {
      partial.forget();
      throw none();
    }
    partial.finish();
    end.seconds = partial.seconds();
    return report(end);
  }

  // Writes samples as they come, or those chosen when all are drawn, to what cannot be resumed.
  int to_stream(Generator& generator) {
    const auto began = Clock::now();
    const Claim claim(options_.out);
    Output output(options_.out);
    std::vector<Sample> kept;
    const bool choosing = options_.choice.made();
    const auto keep = [&](Sample&& one) {
      if (choosing) kept.push_back(std::move(one));
      else output.line(line(one));
    };
    End end;
    try {
      draw(generator, end, keep, [] {});
    } catch (const ExhaustedError& error) {
      if (filter_.counts.kept == 0) throw;
      end.exhausted = error.what();
    }
    if (choosing) kept = options_.choice.of(std::move(kept), options_.filter, training_);
    for (const auto& one : kept) output.line(line(one));  // without a choice all are written, and none is here
    end.alone = std::count_if(kept.begin(), kept.end(), [](const auto& one) { return one.votes && one.votes->second == 1; });
    end.written = choosing ? static_cast<std::int64_t>(kept.size()) : filter_.counts.kept;
    if (end.written == 0 && end.interrupted) {
      std::cerr << "interrupted; none kept\n";
      return interrupted_code();
    }
    if (end.written == 0) throw none();
    output.finish();
    end.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    return report(end);
  }

  // Draws until enough is kept, or a signal comes, and hands on what is kept; `save` is called between two draws. Throws
  // ExhaustedError: that cannot be had.
  void draw(Generator& generator, End& end, const std::function<void(Sample&&)>& keep,
            const std::function<void()>& save) {
    Counts& counts = filter_.counts;
    if (options_.count && counts.kept >= *options_.count) return;
    Sampling sampling = options_.sampling;
    sampling.slots = slots_;
    sampling.unwanted = filter_.unwanted();
    sampling.pool = pool_ ? &*pool_ : nullptr;
    sampling.stop = options_.draws ? sampling.start + *options_.draws : std::int64_t{1} << 62;
    sampling.start += counts.drawn;
    Progress progress(options_.count.value_or(options_.draws.value_or(0)));
    progress.begin(counts);
    generator.sample(sampling, [&](Draw&& draw) {
      end.interrupted = interrupted();
      if (end.interrupted) return false;
      if (counts.drawn % SAVING == 0) save();
      if (!options_.draws && counts.drawn - counts.last >= PATIENCE) throw exhausted();
      auto pair = filter_.keep(draw);
      progress.update(counts, options_.count.has_value());
      if (!pair) return true;
      keep({draw.index, std::move(pair->first), std::move(pair->second), draw.log_prob, std::move(draw.prototypes), {}});
      return !options_.count || counts.kept < *options_.count;
    });
    if (options_.draws && options_.count && counts.kept < *options_.count && !options_.choice.made()) {
      end.exhausted = "all " + with_commas(*options_.draws) + " draws of --draws are made";
    }
  }

  ExhaustedError exhausted() const {
    const std::string passes = joined(options_.filter_names, ", ");
    return ExhaustedError(with_commas(PATIENCE) + " draws in a row gave no sample that passes " +
                          (passes.empty() ? "as well-formed" : passes) + ": " + filter_.counts.text());
  }

  // What was there before is worth more than nothing.
  ExhaustedError none() const {
    const std::string what = filter_.counts.kept > 0 ? "chosen" : "kept";
    return ExhaustedError("no sample was " + what + ", and nothing is written: " + filter_.counts.text());
  }

  // The samples that are written already, for the filter unique.
  void remember(const PartialFile& partial) {
    std::unordered_map<std::string, std::int32_t> ids;
    for (std::size_t id = SPECIALS; id < bundle_.vocabulary.size(); ++id) {
      ids[bundle_.vocabulary[id]] = static_cast<std::int32_t>(id);
    }
    const auto tokens = [&](const std::vector<std::string>& words) {
      Tokens found;
      for (const auto& word : words) found.push_back(ids.at(word));
      return found;
    };
    partial.each_line([&](std::string_view text, std::int64_t number) {
      try {
        const auto [source, target] = words_of(text, tsv_);
        filter_.remember(tokens(source), tokens(target));
      } catch (const std::exception&) {  // of JSON, or a token that is none of the vocabulary
        throw UserError(partial.path().string() + ", line " + std::to_string(number) +
                        ": not a sample: the file was altered");
      }
    });
  }

  int report(const End& end) const {
    const Counts& counts = filter_.counts;
    std::cerr << counts.text();
    if (options_.choice.made()) std::cerr << "; " << with_commas(end.written) << " chosen";
    std::cerr << " (" << static_cast<std::int64_t>(static_cast<double>(counts.drawn) / end.seconds) << " draws/s, "
              << options_.sampling.workers << " threads, " << end.seconds << " s)\n";
    if (2 * end.alone > end.written) {
      std::cerr << "warning: " << with_commas(end.alone) << " of " << with_commas(end.written)
                << " sources were drawn once, so that nothing voted against their targets: make more "
                << (options_.draws ? "--draws" : "draws (--draws in place of -n)")
                << ", or ask for clear votes (--margin 3)\n";
    }
    if (is_wasteful(counts)) {
      std::cerr << "few draws were kept: --prototypes rare draws only where a prototype is rare, which wastes far fewer\n";
    }
    if (!is_stream(options_.out)) write_record(options_, asked_, counts, end.written, end.seconds);
    if (end.interrupted) {
      std::cerr << "interrupted; " << with_commas(end.written) << " samples written, --start "
                << options_.sampling.start + counts.drawn << " goes on\n";
      return interrupted_code();
    }
    if (!end.exhausted.empty()) {
      std::cerr << "warning: " << end.exhausted << "; " << with_commas(end.written) << " samples are in "
                << options_.out << ", fewer than asked for\n";
    }
    return 0;
  }

  // Whether most draws were thrown away that rare prototypes would have spared.
  bool is_wasteful(const Counts& counts) const {
    constexpr std::int64_t FEW = 20;  // one of so many
    const bool usual = options_.filter.rare && options_.filter.ngram == 1 && !options_.rarity;
    return usual && !pool_ && bundle_.prototypes > 0 && FEW * counts.kept < counts.drawn;
  }

  static constexpr std::int64_t SAVING = 256;  // draws between two looks at the clock

  const Options& options_;
  const Training training_;
  const Bundle& bundle_;
  const Spelling spelling_;
  Filter filter_;
  const std::optional<Pool> pool_;
  bool tsv_;
  nlohmann::ordered_json asked_;
  std::int64_t slots_ = 0;
};

}  // namespace

int run(const Options& options, const Bundle& bundle) { return Run(options, bundle)(); }

}  // namespace compgen
