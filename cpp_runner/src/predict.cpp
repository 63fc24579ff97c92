#include "predict.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "errors.h"

namespace compgen {
namespace {

[[noreturn]] void damaged(const Bundle& bundle, const std::string& what) {
  throw UserError(bundle.folder.string() + ": the network gives " + what);
}

// Decodes the sources with these indices together, until all have ended.
template <class Real>
void decode(const Bundle& bundle, Backend<Real>& backend, const std::vector<Tokens>& sources,
            const std::vector<std::size_t>& indices, std::vector<Answer>& answers) {
  const auto rows = static_cast<std::int64_t>(indices.size());
  const auto v = static_cast<std::int64_t>(bundle.vocabulary.size());
  const auto width = static_cast<std::int64_t>(sources[indices.back()].size()) + 1;  // the last is the longest
  Batch<Real> batch(bundle, rows, width);
  batch.rows = rows;
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const Tokens& source = sources[indices[row]];
    auto* const tokens = batch.memory_tokens.data() + static_cast<std::int64_t>(row) * width;
    *std::copy(source.begin(), source.end(), tokens) = EOS;
  }
  auto encoded = backend.encode(batch.memory_tokens, rows, width);
  batch.keys = std::move(encoded.keys), batch.values = std::move(encoded.values);
  backend.start(encoded.final, rows, batch.hidden, batch.cell);
  std::fill(batch.token.begin(), batch.token.end(), BOS);
  std::fill(batch.half.begin(), batch.half.end(), 1);
  std::vector<bool> ended(indices.size());
  for (std::int64_t step = 0, running = rows; step < bundle.max_length && running > 0; ++step) {
    std::fill(batch.position.begin(), batch.position.end(), step);
    backend.step(batch);
    for (std::size_t row = 0; row < indices.size(); ++row) {
      if (ended[row]) continue;
      const std::int64_t token = batch.next_token[row];
      if (token < 0 || token >= v) damaged(bundle, "a token outside the vocabulary");
      Answer& answer = answers[indices[row]];
      answer.log_prob += static_cast<double>(batch.log_probs[row * static_cast<std::size_t>(v) +
                                                             static_cast<std::size_t>(token)]);
      if (!std::isfinite(answer.log_prob)) damaged(bundle, "a probability that is no number");
      if (token == EOS) {
        ended[row] = answer.finished = true, --running;
      } else {
        answer.target.push_back(static_cast<std::int32_t>(token));
      }
    }
    batch.advance();
  }
}

}  // namespace

template <class Real>
std::vector<Answer> answers(const Bundle& bundle, Backend<Real>& backend, const std::vector<Tokens>& sources,
                            std::int64_t slots, int workers) {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  std::vector<Answer> found(sources.size());
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    const auto each = static_cast<std::size_t>(slots);
    try {
      for (std::size_t first; (first = next.fetch_add(each)) < order.size();) {
        const std::size_t last = std::min(first + each, order.size());
        decode(bundle, backend, sources, {order.begin() + static_cast<std::ptrdiff_t>(first),
                                          order.begin() + static_cast<std::ptrdiff_t>(last)}, found);
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
    for (int k = 0; k < workers; ++k) threads.emplace_back(work);
  }
  if (error) std::rethrow_exception(error);
  return found;
}

template std::vector<Answer> answers(const Bundle&, Backend<float>&, const std::vector<Tokens>&, std::int64_t, int);
template std::vector<Answer> answers(const Bundle&, Backend<double>&, const std::vector<Tokens>&, std::int64_t, int);

}  // namespace compgen
