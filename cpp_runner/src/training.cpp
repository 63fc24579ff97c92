// The loops of training for Python, which opens libcompgen-training and calls them by name (compgen/models/compiled.py). No
// header declares them: both sides change together, and LAYOUT with them.
#include <cstdint>
#include <exception>
#include <string>

#include "compgen.h"
#include "errors.h"
#include "instructions.h"
#include "recurrence.h"

#define COMPGEN_SET(name) \
  namespace name {        \
  Loops loops();          \
  }
namespace compgen {
#if defined(X86_SETS)
COMPGEN_SET(avx512)
COMPGEN_SET(avx2)
#endif
COMPGEN_SET(portable)
}  // namespace compgen
#undef COMPGEN_SET

using namespace compgen;

namespace {

constexpr int LAYOUT = 2;

Loops chosen_loops() {
  const std::string name = chosen_instructions();
#if defined(X86_SETS)
  if (name == "avx2") return avx2::loops();
  if (name != "portable") return avx512::loops();  // of what is beside it, training uses nothing
#endif
  return portable::loops();
}

// 0, or 1 if there is no memory or no thread, 2 if COMPGEN_INSTRUCTIONS names no instruction set that there is.
template <class All>
int guarded(void (*Loops::*loop)(const All&), const All* all) noexcept {
  try {
    static const Loops loops = chosen_loops();
    (loops.*loop)(*all);
    return 0;
  } catch (const UserError&) {
    return 2;
  } catch (const std::exception&) {
    return 1;
  }
}

}  // namespace

extern "C" {

COMPGEN_API int compgen_training_layout() { return LAYOUT; }
COMPGEN_API int compgen_fed_forward(const compgen_fed_loop* all) { return guarded(&Loops::fed_forward, all); }
COMPGEN_API int compgen_fed_backward(const compgen_fed_loop* all) { return guarded(&Loops::fed_backward, all); }
COMPGEN_API int compgen_packed_forward(const compgen_packed* all) { return guarded(&Loops::packed_forward, all); }
COMPGEN_API int compgen_packed_backward(const compgen_packed* all) { return guarded(&Loops::packed_backward, all); }

}
