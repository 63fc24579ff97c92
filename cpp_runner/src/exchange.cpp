#include "exchange.h"

#include <optional>

#include "threads.h"

namespace compgen {

void in_order(const Sampling& sampling, const std::function<void(Exchange&)>& work, const Take& take) {
  Exchange exchange(sampling.start, sampling.stop, sampling.workers);
  Threads threads([&] { exchange.cancel(); });
  for (int k = 0; k < sampling.workers; ++k) {
    threads.start([&] {
      std::exception_ptr error;
      try {
        work(exchange);
      } catch (...) {
        error = std::current_exception();
      }
      exchange.leave(error);
    });
  }
  std::deque<std::optional<Draw>> waiting;  // from address `following` on
  std::int64_t following = sampling.start;
  std::vector<Draw> draws;
  while (exchange.receive(draws)) {
    for (auto& draw : draws) {
      const auto place = static_cast<std::size_t>(draw.index - following);
      if (place >= waiting.size()) waiting.resize(place + 1);
      waiting[place] = std::move(draw);
    }
    for (; !waiting.empty() && waiting.front(); waiting.pop_front(), ++following) {
      if (!take(std::move(*waiting.front()))) return;
    }
  }
  if (const auto failure = exchange.failure()) std::rethrow_exception(failure);
}

}  // namespace compgen
