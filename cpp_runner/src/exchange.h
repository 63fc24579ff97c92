// Threads that draw: they share one counter of addresses, and what they draw comes out in order of address.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "sampler.h"

namespace compgen {

// The addresses still to be drawn, and the draws made, on their way to the one who asked for them.
class Exchange {
 public:
  Exchange(std::int64_t start, std::int64_t stop, int workers) : next_(start), stop_(stop), running_(workers) {}

  // Up to `count` further addresses, as [first, last); none when all are taken or work was cancelled.
  std::pair<std::int64_t, std::int64_t> take(std::int64_t count) {
    const std::lock_guard lock(mutex_);
    const std::int64_t first = next_;
    next_ = std::max(first, stop_ - first < count ? stop_ : first + count);
    return {first, next_};
  }

  // Waits for room, so that workers do not run ahead of a slow writer.
  void give(std::vector<Draw>&& draws) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return done_.size() < WAITING || cancelled_; });
    done_.push_back(std::move(draws));
    arrived_.notify_one();
  }

  // Says that an address cannot be drawn; those before it can, and are.
  void fail(std::int64_t address, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (address >= stop_) return;
    stop_ = address;
    failure_ = error;
  }

  void leave(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    --running_;
    if (error && !error_) error_ = error;
    arrived_.notify_one();
  }

  // The next draws made, in any order; false when all workers have left. Throws what a worker threw.
  bool receive(std::vector<Draw>& draws) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !done_.empty() || running_ == 0 || error_; });
    if (error_) std::rethrow_exception(error_);
    if (done_.empty()) return false;
    draws = std::move(done_.front());
    done_.pop_front();
    room_.notify_one();
    return true;
  }

  // Why the first address that was not drawn could not be, if there is a reason.
  std::exception_ptr failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  void cancel() {
    const std::lock_guard lock(mutex_);
    stop_ = std::min(stop_, next_);
    cancelled_ = true;
    room_.notify_all();
  }

  bool cancelled() const { return cancelled_; }

 private:
  static constexpr std::size_t WAITING = 64;
  std::mutex mutex_;
  std::condition_variable arrived_, room_;
  std::deque<std::vector<Draw>> done_;
  std::int64_t next_, stop_;
  int running_;
  std::atomic<bool> cancelled_ = false;
  std::exception_ptr error_, failure_;
};

// Has threads do `work`, each until there are no more addresses, and hands what they give to `take` in order.
void in_order(const Sampling& sampling, const std::function<void(Exchange&)>& work, const Take& take);

}  // namespace compgen
