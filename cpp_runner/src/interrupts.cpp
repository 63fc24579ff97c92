#include "interrupts.h"

#include <csignal>
#include <initializer_list>

namespace compgen {
namespace {

volatile std::sig_atomic_t signal_number = 0;

}  // namespace

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { signal_number = number; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

bool interrupted() { return signal_number != 0; }

int interrupted_code() { return 128 + signal_number; }

}  // namespace compgen
