#include <algorithm>
#include <cstdlib>
#include <vector>

#include "errors.h"
#include "instructions.h"

namespace compgen {
namespace {

// The sets that this processor has, the best first.
std::vector<std::string> sets() {
  std::vector<std::string> found;
#if defined(X86_SETS)
  // All that CMakeLists.txt lets the compiler use; a virtual machine may hide any of them.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx512 && __builtin_cpu_supports("avx512vnni")) found.push_back("vnni");
  if (avx512) found.push_back("avx512");
  if (avx2) found.push_back("avx2");
#endif
  found.push_back("portable");
  return found;
}

}  // namespace

bool has_instructions(const std::string& name) {
  const auto all = sets();
  return std::find(all.begin(), all.end(), name) != all.end();
}

std::string chosen_instructions() {
  const char* const named = std::getenv("COMPGEN_INSTRUCTIONS");
  const auto all = sets();
  if (!named || !*named) return all.front();
  if (has_instructions(named)) return named;
  std::string names;
  for (const auto& name : all) names += (names.empty() ? "" : ", ") + name;
  throw UserError("COMPGEN_INSTRUCTIONS=" + one_line(named) + ": expected one of " + names +
                  ", which this program and this processor have");
}

}  // namespace compgen
