#include "predict.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "beam.h"

namespace compgen {
namespace {

using Indices = std::vector<std::size_t>;

void open(Decoder& decoder, const std::vector<Tokens>& sources, const Indices& indices) {
  const std::size_t width = sources[indices.back()].size() + 1;  // the last is the longest
  std::vector<std::int64_t> tokens(indices.size() * width, PAD);
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const Tokens& source = sources[indices[row]];
    *std::copy(source.begin(), source.end(), tokens.begin() + static_cast<std::ptrdiff_t>(row * width)) = EOS;
  }
  decoder.open(tokens, static_cast<std::int64_t>(indices.size()), static_cast<std::int64_t>(width));
}

// Writes the most probable token at each step; a row leaves once it has ended.
std::vector<Answer> greedy(Decoder& decoder, std::size_t rows, std::int64_t max_length) {
  std::vector<Answer> found(rows);
  Indices running(rows);
  std::iota(running.begin(), running.end(), std::size_t{0});
  for (std::int64_t step = 0; step < max_length && !running.empty(); ++step) {
    decoder.advance();
    const std::size_t vocabulary = decoder.log_probs.size() / running.size();
    Indices going;
    std::vector<std::int64_t> kept;
    for (std::size_t row = 0; row < running.size(); ++row) {
      const auto token = decoder.token[row];
      Answer& answer = found[running[row]];
      answer.log_prob += decoder.log_probs[row * vocabulary + static_cast<std::size_t>(token)];
      answer.finished = token == EOS;
      if (answer.finished) continue;
      answer.target.push_back(static_cast<std::int32_t>(token));
      going.push_back(running[row]), kept.push_back(static_cast<std::int64_t>(row));
    }
    if (!going.empty() && going.size() < running.size()) decoder.keep(kept);
    running = std::move(going);
  }
  return found;
}

// Answers the sources with these indices together.
void decode(const Bundle& bundle, Decoder& decoder, const std::vector<Tokens>& sources, const Indices& indices,
            const Answering& how, std::vector<std::vector<Answer>>& found) {
  open(decoder, sources, indices);
  if (how.beam > 1) {
    auto best = beam(decoder, static_cast<std::int64_t>(indices.size()), how.beam, how.best, bundle.max_length);
    for (std::size_t row = 0; row < indices.size(); ++row) found[indices[row]] = std::move(best[row]);
  } else {
    auto one = greedy(decoder, indices.size(), bundle.max_length);
    for (std::size_t row = 0; row < indices.size(); ++row) found[indices[row]] = {std::move(one[row])};
  }
}

}  // namespace

std::vector<std::vector<Answer>> answers(const Bundle& bundle, Predictor& predictor, const std::vector<Tokens>& sources,
                                         const Answering& how) {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  std::vector<std::vector<Answer>> found(sources.size());
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    const auto each = static_cast<std::size_t>(how.slots);
    try {
      const auto decoder = predictor.decoder();
      for (std::size_t first; (first = next.fetch_add(each)) < order.size();) {
        const std::size_t last = std::min(first + each, order.size());
        const auto begin = order.begin();
        decode(bundle, *decoder, sources,
               Indices(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last)), how,
               found);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  };
  {
    std::vector<std::thread> threads;
    struct Join {
      std::vector<std::thread>& threads;
      ~Join() {
        for (auto& thread : threads) thread.join();
      }
    } join{threads};
    for (int k = 0; k < how.workers; ++k) threads.emplace_back(work);
  }
  if (error) std::rethrow_exception(error);
  return found;
}

}  // namespace compgen
