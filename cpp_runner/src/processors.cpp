#include "processors.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace compgen {
namespace {

namespace fs = std::filesystem;

constexpr double NONE = std::numeric_limits<double>::infinity();

// The first two numbers of a file, or of two files; what is not there stays as it is.
void numbers(const fs::path& path, double& first, double* second = nullptr) {
  std::ifstream file(path);
  if (file >> first && second) file >> *second;
}

// What a group's own files say: microseconds of processor time in each period of so many.
double limit_of_group(const fs::path& folder) {
  double quota = -1, period = -1;  // -1: no limit; `max` is no number
  std::error_code none;
  if (fs::exists(folder / "cpu.max", none)) {
    numbers(folder / "cpu.max", quota, &period);
  } else {
    numbers(folder / "cpu.cfs_quota_us", quota), numbers(folder / "cpu.cfs_period_us", period);
  }
  return quota > 0 && period > 0 ? quota / period : NONE;
}

}  // namespace

double limit_of_time(const fs::path& root) {
  const fs::path groups = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  double least = NONE;
  for (std::string line; std::getline(file, line);) {  // number:controllers:path
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) return least;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";  // version 2 of control groups
    if (!unified && controllers.find(",cpu,") == controllers.npos) continue;
    fs::path folder = unified ? groups : groups / "cpu";
    least = std::min(least, limit_of_group(folder));
    for (const auto& part : fs::path(line.substr(second + 1)).relative_path()) {
      least = std::min(least, limit_of_group(folder /= part));
    }
  }
  return least;
}

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
    if (known) return static_cast<int>(std::max(1.0, std::ceil(std::min(1.0 * count, limit_of_time("/")))));
    if (!small) break;
  }
#endif
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace compgen
