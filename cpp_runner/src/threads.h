// Threads that never outlive what they work on.
#pragma once

#include <functional>
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

}  // namespace compgen
