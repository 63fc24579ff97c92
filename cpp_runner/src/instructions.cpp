#include "instructions.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>

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
COMPGEN_SET(amx)
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
  const char* name;
  Makers<float> single;
  Makers<double> twofold;
};

#define COMPGEN_MAKERS(name, doubles) \
  {#name, {name::make<float>, name::make_transformer<float>}, {doubles::make<double>, doubles::make_transformer<double>}}

const Set SETS[] = {
#if defined(X86_SETS)
    COMPGEN_MAKERS(amx, avx2),
    COMPGEN_MAKERS(vnni, avx2),
    COMPGEN_MAKERS(avx512, avx2),
    COMPGEN_MAKERS(avx2, avx2),
#endif
    COMPGEN_MAKERS(portable, portable),
};

// Those of the chosen set.
template <class Real>
Makers<Real> makers() {
  const std::string name = chosen_instructions();
  const auto& set = *std::find_if(std::begin(SETS), std::end(SETS), [&](const Set& one) { return one.name == name; });
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
