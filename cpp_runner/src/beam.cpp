#include "beam.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace compgen {
namespace {

constexpr double NEVER = -std::numeric_limits<double>::infinity();

// The hypotheses of one row: live ones, and the best that have ended.
class Beam {
 public:
  Beam(std::int64_t width, std::int64_t best) : width_(static_cast<std::size_t>(width)), best_(best) {}

  std::size_t size() const { return live_.size(); }
  const Tokens& tokens(std::size_t hypothesis) const { return live_[hypothesis].target; }

  // Adds a token to each live hypothesis, given log-probabilities (hypotheses, V); returns the parents of the new ones.
  std::vector<std::int64_t> extend(const double* log_probs, std::int64_t vocabulary, std::int64_t step) {
    const auto total = totals(log_probs, vocabulary, step);
    std::vector<Answer> next;
    std::vector<std::int64_t> parents;
    // Each hypothesis ends in one way only, so of twice as many as are wanted enough do not.
    const auto order = first(total, 2 * width_);
    for (std::size_t rank = 0; rank < order.size() && total[order[rank]] > NEVER; ++rank) {
      const auto parent = static_cast<std::int64_t>(order[rank]) / vocabulary;
      const auto token = static_cast<std::int64_t>(order[rank]) % vocabulary;
      Answer one = live_[static_cast<std::size_t>(parent)];
      one.log_prob = total[order[rank]], one.finished = token == EOS;
      if (one.finished && rank < width_) {
        end(std::move(one));
      } else if (!one.finished && next.size() < width_) {
        one.target.push_back(static_cast<std::int32_t>(token));
        next.push_back(std::move(one)), parents.push_back(parent);
      }
    }
    live_ = std::move(next);
    return parents;
  }

  // Whether no live hypothesis can overtake one of the best that have ended; a log-probability only falls.
  bool settled() const {
    if (live_.empty()) return true;
    return static_cast<std::int64_t>(ended_.size()) == best_ && ended_.back().log_prob >= live_[0].log_prob;
  }

  std::vector<Answer> answers() const {
    if (!ended_.empty()) return ended_;
    return {live_.empty() ? Answer{} : live_[0]};
  }

 private:
  // The log-probabilities (hypotheses, V) of the live ones with a token more.
  std::vector<double> totals(const double* log_probs, std::int64_t vocabulary, std::int64_t step) const {
    std::vector<double> total;
    total.reserve(live_.size() * static_cast<std::size_t>(vocabulary));
    for (const auto& one : live_) {
      for (std::int64_t token = 0; token < vocabulary; ++token, ++log_probs) {
        total.push_back(forbidden(token, step) ? NEVER : one.log_prob + *log_probs);
      }
    }
    return total;
  }

  // The places of the largest numbers, the largest first; of equal ones, the earlier.
  static std::vector<std::size_t> first(const std::vector<double>& numbers, std::size_t count) {
    std::vector<std::size_t> places(numbers.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    const auto before = [&](std::size_t a, std::size_t b) {
      return numbers[a] > numbers[b] || (numbers[a] == numbers[b] && a < b);
    };
    const auto end = places.begin() + static_cast<std::ptrdiff_t>(std::min(count, places.size()));
    std::partial_sort(places.begin(), end, places.end(), before);
    places.erase(end, places.end());
    return places;
  }

  void end(Answer&& one) {
    const auto after = std::upper_bound(ended_.begin(), ended_.end(), one,
                                        [](const Answer& a, const Answer& b) { return a.log_prob > b.log_prob; });
    ended_.insert(after, std::move(one));
    if (static_cast<std::int64_t>(ended_.size()) > best_) ended_.pop_back();
  }

  std::size_t width_;
  std::int64_t best_;
  std::vector<Answer> live_ = {Answer{}}, ended_;  // the best first
};

}  // namespace

std::vector<std::vector<Answer>> beam(Decoder& decoder, std::int64_t rows, std::int64_t width, std::int64_t best,
                                      std::int64_t max_length) {
  std::vector<Beam> beams(static_cast<std::size_t>(rows), Beam(width, best));
  std::vector<Beam*> running;
  for (auto& one : beams) running.push_back(&one);
  for (std::int64_t step = 0; step < max_length && !running.empty(); ++step) {
    decoder.advance();
    const auto vocabulary = static_cast<std::int64_t>(decoder.log_probs.size() / decoder.token.size());
    std::vector<Beam*> going;
    std::vector<std::int64_t> kept, tokens;
    std::int64_t row = 0;  // the first of a beam's
    for (auto* const one : running) {
      const auto hypotheses = static_cast<std::int64_t>(one->size());
      const auto parents = one->extend(decoder.log_probs.data() + row * vocabulary, vocabulary, step);
      if (!one->settled()) {
        going.push_back(one);
        for (std::size_t k = 0; k < parents.size(); ++k) {
          kept.push_back(row + parents[k]), tokens.push_back(one->tokens(k).back());
        }
      }
      row += hypotheses;
    }
    running = std::move(going);
    if (running.empty()) break;
    decoder.keep(kept);
    decoder.token = std::move(tokens);
  }
  std::vector<std::vector<Answer>> found;
  for (const auto& one : beams) found.push_back(one.answers());
  return found;
}

}  // namespace compgen
