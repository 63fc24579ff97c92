// Threads that never outlive what they work on.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace compgen {

// Threads that are waited for, whatever is thrown: a thread that is not would end the program.
class Threads {
 public:
  // `stop` asks those that are at work to end soon.
  explicit Threads(std::function<void()> stop) : stop_(std::move(stop)) {}
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() {
    if (!threads_.empty()) stop_();
    join();
  }

  // Throws system_error: there can be no more threads.
  void start(std::function<void()> work) {
    try {
      threads_.emplace_back(std::move(work));
    } catch (const std::system_error& error) {
      throw std::system_error(error.code(), "thread " + std::to_string(threads_.size() + 1) + " cannot be started");
    }
  }

  // Waits until all have done their work.
  void join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::function<void()> stop_;
  std::vector<std::thread> threads_;
};

// Has threads do the pieces from 0 to `pieces` - 1, each taking the next one that nobody has: `make()` gives each thread
// what does a piece. Throws what a piece threw, once all threads have stopped.
template <class Make>
void share(std::size_t pieces, int workers, Make make) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    try {
      const auto piece = make();
      for (std::size_t number; (number = next.fetch_add(1)) < pieces;) piece(number);
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      next = pieces;
    }
  };
  Threads threads([&] { next = pieces; });
  for (int k = 0; k < workers; ++k) threads.start(work);
  threads.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace compgen
