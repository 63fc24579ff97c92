#include "instructions.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "errors.h"
#include "step.h"

namespace compgen {

// What step.cpp defines once for each set.
#define COMPGEN_SET(name)                                       \
  namespace name {                                              \
  template <class Real>                                         \
  std::unique_ptr<const Step<Real>> make(const Bundle& bundle); \
  }
#if defined(X86_SETS)
COMPGEN_SET(vnni)
COMPGEN_SET(avx512)
COMPGEN_SET(avx2)
#endif
COMPGEN_SET(portable)
#undef COMPGEN_SET

namespace {

template <class Real>
using Make = std::unique_ptr<const Step<Real>> (*)(const Bundle&);

struct Set {
  std::string name;
  bool runs;  // on this processor
  Make<float> single;
  Make<double> twofold;
};

// The best first.
std::vector<Set> sets() {
  std::vector<Set> found;
#if defined(X86_SETS)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  found.push_back({"vnni", vnni, vnni::make<float>, vnni::make<double>});
  found.push_back({"avx512", avx512, avx512::make<float>, avx512::make<double>});
  found.push_back({"avx2", avx2, avx2::make<float>, avx2::make<double>});
#endif
  found.push_back({"portable", true, portable::make<float>, portable::make<double>});
  found.erase(std::remove_if(found.begin(), found.end(), [](const Set& set) { return !set.runs; }), found.end());
  return found;
}

}  // namespace

bool has_instructions(const std::string& name) {
  const auto all = sets();
  return std::any_of(all.begin(), all.end(), [&](const Set& set) { return set.name == name; });
}

std::string chosen_instructions() {
  const char* const named = std::getenv("COMPGEN_INSTRUCTIONS");
  const auto all = sets();
  if (!named || !*named) return all.front().name;
  if (has_instructions(named)) return named;
  std::string names;
  for (const auto& set : all) names += (names.empty() ? "" : ", ") + set.name;
  throw UserError("COMPGEN_INSTRUCTIONS=" + one_line(named) + ": expected one of " + names +
                  ", which this program and this processor have");
}

template <class Real>
std::unique_ptr<const Step<Real>> make_step(const Bundle& bundle, const std::string& instructions) {
  const auto all = sets();
  const auto set = std::find_if(all.begin(), all.end(), [&](const Set& one) { return one.name == instructions; });
  if (set == all.end()) throw std::logic_error("no instruction set " + instructions);
  if constexpr (std::is_same_v<Real, float>) return set->single(bundle);
  else return set->twofold(bundle);
}

template std::unique_ptr<const Step<float>> make_step<float>(const Bundle&, const std::string&);
template std::unique_ptr<const Step<double>> make_step<double>(const Bundle&, const std::string&);

}  // namespace compgen
