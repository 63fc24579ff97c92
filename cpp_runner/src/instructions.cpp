#include "instructions.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <type_traits>
#include <vector>

#include "errors.h"
#include "step.h"
#include "transformer.h"

namespace compgen {

// What step.cpp and transformer.cpp define once for each set; in double precision, which only checks need, for two of them.
#define COMPGEN_SET(name)                                                          \
  namespace name {                                                                 \
  template <class Real>                                                            \
  std::unique_ptr<const Step<Real>> make(const Bundle& bundle);                    \
  template <class Real>                                                            \
  std::unique_ptr<const Transformer<Real>> make_transformer(const Bundle& bundle); \
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
struct Makers {
  std::unique_ptr<const Step<Real>> (*step)(const Bundle&);
  std::unique_ptr<const Transformer<Real>> (*transformer)(const Bundle&);
};

struct Set {
  std::string name;
  bool runs;  // on this processor
  Makers<float> single;
  Makers<double> twofold;
};

#define COMPGEN_MAKERS(name, doubles) \
  {name::make<float>, name::make_transformer<float>}, {doubles::make<double>, doubles::make_transformer<double>}

// The best first.
std::vector<Set> sets() {
  std::vector<Set> found;
#if defined(X86_SETS)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  found.push_back({"vnni", vnni, COMPGEN_MAKERS(vnni, avx2)});
  found.push_back({"avx512", avx512, COMPGEN_MAKERS(avx512, avx2)});
  found.push_back({"avx2", avx2, COMPGEN_MAKERS(avx2, avx2)});
#endif
  found.push_back({"portable", true, COMPGEN_MAKERS(portable, portable)});
  found.erase(std::remove_if(found.begin(), found.end(), [](const Set& set) { return !set.runs; }), found.end());
  return found;
}

// Those of the chosen set.
template <class Real>
Makers<Real> makers() {
  const std::string name = chosen_instructions();
  const auto all = sets();
  const auto& set = *std::find_if(all.begin(), all.end(), [&](const Set& one) { return one.name == name; });
  if constexpr (std::is_same_v<Real, float>) return set.single;
  else return set.twofold;
}

template <class Made>
Made made(const Bundle& bundle, Made (*make)(const Bundle&)) {
  try {
    return make(bundle);
  } catch (const UserError& error) {
    throw UserError((bundle.folder / STEP_WEIGHTS).string() + ": " + error.what());
  }
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
std::unique_ptr<const Step<Real>> make_step(const Bundle& bundle) {
  return made(bundle, makers<Real>().step);
}

template <class Real>
std::unique_ptr<const Transformer<Real>> make_transformer_step(const Bundle& bundle) {
  return made(bundle, makers<Real>().transformer);
}

template std::unique_ptr<const Step<float>> make_step<float>(const Bundle&);
template std::unique_ptr<const Step<double>> make_step<double>(const Bundle&);
template std::unique_ptr<const Transformer<float>> make_transformer_step<float>(const Bundle&);
template std::unique_ptr<const Transformer<double>> make_transformer_step<double>(const Bundle&);

}  // namespace compgen
