#include "direct.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "errors.h"
#include "retrieval.h"
#include "threads.h"

namespace compgen {
namespace {

constexpr std::size_t BLOCK = 32;  // sources answered together, each with up to 25 choices
constexpr double UNKNOWN = std::numeric_limits<double>::quiet_NaN();

// What is known of a source.
struct Asked {
  const Tokens* source;
  std::vector<std::int64_t> tuples;  // (C, n) choices of prototypes, as places in the pool
  std::size_t choices = 0;           // C
  std::vector<Tokens> candidates;    // distinct answers
  std::vector<double> scores;        // (candidates, C) log-probabilities of source and answer
};

// What is written for a source with a choice of prototypes: what is given, and what comes after it.
struct Job {
  std::size_t asked, choice, candidate;  // places
  Tokens given;
  Answer written;
};

// One thread's work.
class Answerer {
 public:
  Answerer(const Bundle& bundle, const Retrieval& retrieval, Predictor& writer, std::int64_t slots)
      : bundle_(bundle),
        retrieval_(retrieval),
        decoder_(writer.decoder()),
        n_(static_cast<std::size_t>(bundle.prototypes)),
        slots_(static_cast<std::size_t>(slots)) {}

  // The best answer to each of a few sources.
  std::vector<Tokens> operator()(const std::vector<const Tokens*>& sources) {
    std::vector<Asked> asked;
    for (const auto* const source : sources) {
      asked.push_back({source, retrieval_.choices(*source, known_), 0, {}, {}});
      asked.back().choices = asked.back().tuples.size() / n_;
    }
    propose(asked);
    score(asked);
    std::vector<Tokens> found;
    for (auto& one : asked) found.push_back(std::move(one.candidates[best(one)]));
    return found;
  }

 private:
  // The greedy answers with each choice.
  void propose(std::vector<Asked>& asked) {
    std::vector<Job> jobs;
    for (std::size_t k = 0; k < asked.size(); ++k) {
      Tokens given = *asked[k].source;
      given.push_back(SEP);
      for (std::size_t choice = 0; choice < asked[k].choices; ++choice) jobs.push_back({k, choice, 0, given, {}});
    }
    write_all(asked, jobs, bundle_.max_length);
    for (auto& job : jobs) {
      auto& candidates = asked[job.asked].candidates;
      const auto place = std::find(candidates.begin(), candidates.end(), job.written.target);
      job.candidate = static_cast<std::size_t>(place - candidates.begin());
      if (place == candidates.end()) candidates.push_back(job.written.target);
    }
    for (auto& one : asked) one.scores.assign(one.candidates.size() * one.choices, UNKNOWN);
    for (const auto& job : jobs) {  // what a choice has written to its end is scored by it already
      if (job.written.finished) score_of(asked[job.asked], job) = job.written.log_prob;
    }
  }

  // What else each choice thinks of the candidates, where there are several.
  void score(std::vector<Asked>& asked) {
    std::vector<Job> jobs;
    std::size_t longest = 0;
    for (std::size_t k = 0; k < asked.size(); ++k) {
      if (asked[k].candidates.size() == 1) continue;
      for (std::size_t candidate = 0; candidate < asked[k].candidates.size(); ++candidate) {
        Tokens given = *asked[k].source;
        const Tokens& answer = asked[k].candidates[candidate];
        given.push_back(SEP), given.insert(given.end(), answer.begin(), answer.end()), given.push_back(EOS);
        longest = std::max(longest, given.size());
        for (std::size_t choice = 0; choice < asked[k].choices; ++choice) {
          Job job{k, choice, candidate, given, {}};
          if (std::isnan(score_of(asked[k], job))) jobs.push_back(std::move(job));
        }
      }
    }
    write_all(asked, jobs, static_cast<std::int64_t>(longest));
    for (const auto& job : jobs) score_of(asked[job.asked], job) = job.written.log_prob;
  }

  // The candidate with the largest sum over choices c of p(source SEP answer EOS | c) (equation 7), of equal ones the first.
  static std::size_t best(const Asked& one) {
    std::size_t found = 0;
    double most = 0;
    for (std::size_t candidate = 0; one.candidates.size() > 1 && candidate < one.candidates.size(); ++candidate) {
      const double* const scores = one.scores.data() + candidate * one.choices;
      double total = scores[0];
      for (std::size_t choice = 1; choice < one.choices; ++choice) total = log_of_sum(total, scores[choice]);
      if (candidate == 0 || total > most) found = candidate, most = total;
    }
    return found;
  }

  // Does the jobs, those of like length together.
  void write_all(const std::vector<Asked>& asked, std::vector<Job>& jobs, std::int64_t max_length) {
    std::vector<Job*> order;
    for (auto& job : jobs) order.push_back(&job);
    std::stable_sort(order.begin(), order.end(),
                     [](const Job* a, const Job* b) { return a->given.size() < b->given.size(); });
    for (std::size_t first = 0; first < order.size(); first += slots_) {
      const std::size_t rows = std::min(slots_, order.size() - first);
      std::vector<std::int64_t> tuples;
      std::vector<Tokens> given;
      for (std::size_t row = 0; row < rows; ++row) {
        const Job& job = *order[first + row];
        const auto tuple = asked[job.asked].tuples.begin() + static_cast<std::ptrdiff_t>(job.choice * n_);
        tuples.insert(tuples.end(), tuple, tuple + static_cast<std::ptrdiff_t>(n_));
        given.push_back(job.given);
      }
      decoder_->open(tuples, static_cast<std::int64_t>(rows), bundle_.prototypes);
      auto written = write(*decoder_, given, max_length);
      for (std::size_t row = 0; row < rows; ++row) order[first + row]->written = std::move(written[row]);
    }
  }

  static double& score_of(Asked& one, const Job& job) { return one.scores[job.candidate * one.choices + job.choice]; }

  const Bundle& bundle_;
  const Retrieval& retrieval_;
  std::unique_ptr<Decoder> decoder_;
  std::size_t n_, slots_;  // prototypes of a choice; rows written together
  Retrieval::Known known_;
};

}  // namespace

double log_of_sum(double a, double b) {
  if (a == b) return a + std::log(2.0);
  return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
}

std::vector<Tokens> direct_answers(const Bundle& bundle, Predictor& writer, const std::vector<Tokens>& sources,
                                   const Answering& how) {
  if (bundle.prototypes != 1 && bundle.prototypes != 2) {
    throw UserError("direct inference is for one prototype or two: found a generator with " +
                    std::to_string(bundle.prototypes));
  }
  const Retrieval retrieval(bundle.pool, static_cast<std::int64_t>(bundle.vocabulary.size()));
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  std::vector<Tokens> found(sources.size());
  share((order.size() + BLOCK - 1) / BLOCK, how.workers, [&] {
    return [&, answerer = std::make_unique<Answerer>(bundle, retrieval, writer, how.slots)](std::size_t block) {
      const std::size_t first = block * BLOCK, count = std::min(BLOCK, order.size() - first);
      std::vector<const Tokens*> asked;
      for (std::size_t k = 0; k < count; ++k) asked.push_back(&sources[order[first + k]]);
      auto answers = (*answerer)(asked);
      for (std::size_t k = 0; k < count; ++k) found[order[first + k]] = std::move(answers[k]);
    };
  });
  return found;
}

}  // namespace compgen
