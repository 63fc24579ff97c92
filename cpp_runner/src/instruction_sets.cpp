#include <algorithm>
#include <cstdlib>
#include <vector>

#include "errors.h"
#include "instructions.h"
#include "text.h"

#if defined(X86_SETS) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace compgen {
namespace {

#if defined(X86_SETS)
// Whether the processor has tiles, and the system lets this process use them.
bool has_amx() {
#if defined(__linux__)
  constexpr long REQUEST_PERMISSION = 0x1023, TILES = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
         syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILES) == 0;
#else
  return false;
#endif
}
#endif

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
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  if (vnni && has_amx()) found.push_back("amx");
  if (vnni) found.push_back("vnni");
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
  throw UserError("COMPGEN_INSTRUCTIONS=" + one_line(named) + ": expected one of " + joined(all, ", ") +
                  ", which this program and this processor have");
}

}  // namespace compgen
