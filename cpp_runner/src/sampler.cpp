#include "sampler.h"

#include <array>
#include <cmath>
#include <deque>
#include <utility>

#include "errors.h"
#include "exchange.h"
#include "memories.h"
#include "random.h"

namespace compgen {
namespace {

// One thread's batch.
template <class Real>
class Slots {
 public:
  Slots(const Bundle& bundle, Backend<Real>& backend, Memories<Real>& memories, const Sampling& sampling,
        Exchange& exchange)
      : bundle_(bundle),
        backend_(backend),
        memories_(memories),
        sampling_(sampling),
        pool_(sampling.pool ? *sampling.pool : bundle.pool),
        exchange_(exchange),
        v_(static_cast<std::int64_t>(bundle.vocabulary.size())),
        batch_(bundle, sampling.slots, bundle.pool.longest()) {
    batch_.temperature = {static_cast<Real>(sampling.temperature[0]), static_cast<Real>(sampling.temperature[1])};
    numbers_.resize(static_cast<std::size_t>(sampling.slots));
    draws_.resize(static_cast<std::size_t>(sampling.slots));
  }

  void run() {
    fill();
    std::vector<Draw> finished;
    auto together = std::size_t{1};  // draws given at a time
    while (batch_.rows > 0 && !exchange_.cancelled()) {
      for (std::int64_t row = 0; row < batch_.rows; ++row) {
        at(batch_.uniform, row) = uniform(row, at(batch_.position, row));
      }
      backend_.step(batch_);
      std::vector<std::int64_t> ended;
      for (std::int64_t row = 0; row < batch_.rows; ++row) {
        if (advance(row)) {
          finished.push_back(std::move(at(draws_, row)));
          ended.push_back(row);
        }
      }
      batch_.advance();
      if (finished.size() >= together) {
        exchange_.give(std::exchange(finished, {}));
        together = std::min({2 * together, MOST, static_cast<std::size_t>(sampling_.slots)});
      }
      if (ended.empty()) continue;
      grow(ended);
      replace(ended);
    }
    if (!finished.empty()) exchange_.give(std::move(finished));
  }

 private:
  // Rows to begin with, and addresses that are taken, and their prototypes encoded, at a time: few at first, so that the
  // first sample need not wait for hundreds.
  static constexpr std::int64_t FIRST = 16, AHEAD = 256;
  static constexpr std::int64_t USUAL = 64;  // tokens of a sample, for which there is room from the start
  // Each giving wakes the one who writes, which takes as long as many numbers: so it is of several draws, of one at first.
  static constexpr std::size_t MOST = 64;

  template <class Array>
  static auto& at(Array& array, std::int64_t index) {
    return array[static_cast<std::size_t>(index)];
  }

  [[noreturn]] void damaged(const std::string& what) const {
    throw UserError(bundle_.folder.string() + ": the network gives " + what);
  }

  // The number that chooses a row's next token. Numbers are drawn for four steps at a time rather than for max_length,
  // which may be 65,536 in a small bundle.
  Real uniform(std::int64_t row, std::int64_t position) {
    auto& four = at(numbers_, row);
    if (position % 4 == 0) four = uniforms<Real>(sampling_.seed, at(draws_, row).index, position / 4);
    return four[static_cast<std::size_t>(position % 4)];
  }

  // Takes note of what a row has written; true if it has come to its end.
  bool advance(std::int64_t row) {
    Draw& draw = at(draws_, row);
    const std::int64_t token = at(batch_.next_token, row);
    if (token < 0 || token >= v_) damaged("a token outside the vocabulary");
    draw.log_prob += static_cast<double>(at(batch_.log_probs, row * v_ + token));
    if (!std::isfinite(draw.log_prob)) damaged("a probability that is no number");
    const std::int64_t position = ++at(batch_.position, row);
    draw.finished = token == EOS;
    const bool at_separator = at(batch_.next_half, row) > at(batch_.half, row);
    draw.given_up = sampling_.unwanted && at_separator && sampling_.unwanted->count(key_of(draw.tokens)) > 0;
    if (!draw.finished) draw.tokens.push_back(static_cast<std::int32_t>(token));
    return draw.finished || draw.given_up || position >= bundle_.max_length;
  }

  void fill() {
    std::vector<std::int64_t> all(static_cast<std::size_t>(std::min(FIRST, sampling_.slots)));
    std::iota(all.begin(), all.end(), 0);
    batch_.rows = static_cast<std::int64_t>(all.size());
    replace(all);
  }

  // Adds rows to those that have ended, as many as there are, until all slots have one.
  void grow(std::vector<std::int64_t>& ended) {
    const std::int64_t rows = std::min(2 * batch_.rows, sampling_.slots);
    while (batch_.rows < rows) ended.push_back(batch_.rows++);
  }

  // Begins new draws in place of those that have ended, behind all others: our own step leaves out the products of the
  // last rows while their state is zero. When there are no more, there are fewer rows.
  void replace(const std::vector<std::int64_t>& ended) {
    const auto count = static_cast<std::int64_t>(ended.size());
    while (static_cast<std::int64_t>(ready_.size()) < count * (1 + bundle_.prototypes) && look_ahead()) {
    }
    for (std::int64_t k = count - 1; k >= 0; --k) move(--batch_.rows, at(ended, k));
    const std::int64_t first = batch_.rows, each = 1 + bundle_.prototypes;
    const std::int64_t fresh = std::min(count, static_cast<std::int64_t>(ready_.size()) / each);
    if (fresh == 0) return;
    Aligned<Real> final(static_cast<std::size_t>(fresh * bundle_.prototypes * bundle_.final_size)), hidden, cell;
    for (std::int64_t k = 0; k < fresh; ++k) begin(batch_.rows++, k, final);
    backend_.start(final, fresh, hidden, cell);
    std::copy_n(hidden.begin(), fresh * bundle_.hidden, batch_.hidden.begin() + first * bundle_.hidden);
    std::copy_n(cell.begin(), fresh * bundle_.hidden, batch_.cell.begin() + first * bundle_.hidden);
  }

  // Takes addresses and has their prototypes encoded; false when there are none left.
  bool look_ahead() {
    const auto [first, last] = exchange_.take(ahead_);
    if (first == last) return false;
    ahead_ = std::min(2 * ahead_, AHEAD);
    const std::int64_t n = bundle_.prototypes;
    std::vector<std::int64_t> chosen(static_cast<std::size_t>((last - first) * n));
    for (std::int64_t index = first; index < last; ++index) {
      pool_.choose(sampling_.seed, index, chosen.data() + (index - first) * n);
    }
    if (n > 0) memories_.prepare(chosen);
    for (std::int64_t index = first; index < last; ++index) {
      ready_.push_back(index);
      ready_.insert(ready_.end(), chosen.begin() + (index - first) * n, chosen.begin() + (index - first + 1) * n);
    }
    return true;
  }

  // Sets up a row for the first of the addresses that are ready, the k-th that begins now.
  void begin(std::int64_t row, std::int64_t k, Aligned<Real>& final) {
    const std::int64_t n = bundle_.prototypes;
    Draw draw;
    draw.index = ready_.front();
    draw.tokens.reserve(static_cast<std::size_t>(std::min(bundle_.max_length, USUAL)));
    draw.prototypes.assign(ready_.begin() + 1, ready_.begin() + 1 + n);
    ready_.erase(ready_.begin(), ready_.begin() + 1 + n);
    if (n > 0) {
      memories_.fetch(draw.prototypes.data(), &at(batch_.memories, row * n), &at(final, k * n * bundle_.final_size));
    }
    at(batch_.token, row) = BOS;
    at(batch_.position, row) = at(batch_.half, row) = 0;
    std::fill_n(batch_.fed.begin() + row * bundle_.output, bundle_.output, Real{0});
    const auto& latent = bundle_.latent;
    if (latent.size > 0) {
      latents(sampling_.seed, draw.index, latent.size, latent.norm, &at(batch_.fed, row * bundle_.output + latent.start));
    }
    at(draws_, row) = std::move(draw);
  }

  template <class T>
  static void copy(const T& from, std::int64_t source, T& to, std::int64_t row, std::int64_t size) {
    std::copy_n(from.begin() + source * size, size, to.begin() + row * size);
  }

  // Moves what a row is into another's place.
  void move(std::int64_t from, std::int64_t to) {
    if (from == to) return;
    for (auto* array : {&batch_.token, &batch_.position, &batch_.half}) copy(*array, from, *array, to, 1);
    copy(batch_.hidden, from, batch_.hidden, to, bundle_.hidden);
    copy(batch_.cell, from, batch_.cell, to, bundle_.hidden);
    copy(batch_.fed, from, batch_.fed, to, bundle_.output);
    copy(batch_.memories, from, batch_.memories, to, bundle_.prototypes);
    at(numbers_, to) = at(numbers_, from);
    at(draws_, to) = std::move(at(draws_, from));
  }

  const Bundle& bundle_;
  Backend<Real>& backend_;
  Memories<Real>& memories_;
  const Sampling& sampling_;
  const Pool& pool_;
  Exchange& exchange_;
  std::int64_t v_;  // the vocabulary's size
  Batch<Real> batch_;
  std::vector<std::array<Real, 4>> numbers_;  // (B) uniforms of four steps, the present one among them
  std::vector<Draw> draws_;                   // (B)
  std::deque<std::int64_t> ready_;            // an address, its n prototypes, and so on
  std::int64_t ahead_ = FIRST;                // addresses to take next
};

// A network that draws, one token of all its rows at a time.
template <class Real>
class NetworkGenerator final : public Generator {
 public:
  NetworkGenerator(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend)
      : bundle_(bundle), backend_(std::move(backend)) {}

  void sample(const Sampling& sampling, const Take& take) override {
    Memories<Real> memories(bundle_, *backend_, bundle_.pool.longest());
    in_order(
        sampling, [&](Exchange& exchange) { Slots<Real>(bundle_, *backend_, memories, sampling, exchange).run(); },
        take);
  }

 private:
  const Bundle& bundle_;
  std::unique_ptr<Backend<Real>> backend_;
};

}  // namespace

std::string key_of(const std::int32_t* tokens, std::size_t count) {
  return std::string(reinterpret_cast<const char*>(tokens), count * sizeof(std::int32_t));
}

template <class Real>
std::unique_ptr<Generator> make_generator(const Bundle& bundle, std::unique_ptr<Backend<Real>> backend) {
  return std::make_unique<NetworkGenerator<Real>>(bundle, std::move(backend));
}

template std::unique_ptr<Generator> make_generator<float>(const Bundle&, std::unique_ptr<Backend<float>>);
template std::unique_ptr<Generator> make_generator<double>(const Bundle&, std::unique_ptr<Backend<double>>);

}  // namespace compgen
