#include "interrupts.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <initializer_list>

namespace compgen {
namespace {

// Milliseconds in which signals count as one: `timeout` sends its signal to the process and to its group.
constexpr std::int64_t TOGETHER = 1000;

volatile std::sig_atomic_t signal_number = 0;
std::atomic<std::int64_t> again{0};  // from when on another signal ends the program
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a handler may wait for no lock");

void note(int number) {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = std::int64_t{1000} * time.tv_sec + time.tv_nsec / 1'000'000;
  if (signal_number == 0) {
    again = now + TOGETHER, signal_number = number;
  } else if (now > again) {
    std::signal(number, SIG_DFL);
    std::raise(number);  // which waits until this handler has returned
  }
}

}  // namespace

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = note;
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&action.sa_mask, signal);  // one at a time
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

bool interrupted() { return signal_number != 0; }

int interrupted_code() { return 128 + signal_number; }

}  // namespace compgen
