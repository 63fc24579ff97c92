#include "processors.h"

#include <algorithm>
#include <cerrno>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace compgen {

int processors() {
#ifdef __linux__
  // The system refuses a set that has no room for all processors it could have.
  for (int room = CPU_SETSIZE; room <= 1 << 20; room *= 2) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(room));
    if (!set) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(room));
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const bool small = !known && errno == EINVAL;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(1, count);
    if (!small) break;
  }
#endif
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace compgen
