#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "processors.h"

namespace fs = std::filesystem;
using namespace compgen;

namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

// The limit where the process's groups are `group`, and control groups have these files.
double limit(const std::string& group, const Files& files) {
  const fs::path root = fs::temp_directory_path() / "compgen-processors";
  fs::remove_all(root);
  const auto write = [&root](const std::string& name, const std::string& text) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  };
  write("proc/self/cgroup", group);
  for (const auto& [name, text] : files) write("sys/fs/cgroup/" + name, text);
  const double found = limit_of_time(root);
  fs::remove_all(root);
  return found;
}

}  // namespace

TEST_CASE("a container's share of time is a limit") {  // the cases of tests/test_processors.py
  const double none = std::numeric_limits<double>::infinity();
  CHECK(limit("0::/\n", {{"cpu.max", "150000 100000\n"}}) == 1.5);
  CHECK(limit("0::/\n", {{"cpu.max", "max 100000\n"}}) == none);
  CHECK(limit("0::/a/b\n", {{"a/cpu.max", "200000 100000\n"}, {"a/b/cpu.max", "max 100000\n"}}) == 2);
  CHECK(limit("0::/host/path\n", {{"cpu.max", "300000 100000\n"}}) == 3);
  const Files half = {{"cpu/a/cpu.cfs_quota_us", "50000\n"}, {"cpu/a/cpu.cfs_period_us", "100000\n"}};
  CHECK(limit("4:cpu,cpuacct:/a\n0::/\n", half) == 0.5);
  CHECK(limit("5:cpuset:/a\n", half) == none);
  CHECK(limit("4:cpu,cpuacct:/\n", {{"cpu/cpu.cfs_quota_us", "-1\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}}) == none);
  CHECK(limit("0::/\n", {{"cpu.max", "many\n"}}) == none);
  CHECK(limit("nothing known\n", {}) == none);
}
