#include "open.h"

#include "derivations.h"
#include "errors.h"
#include "step.h"
#include "transformer.h"

namespace compgen {
namespace {

constexpr std::int64_t SLOTS_OF_GRAMMAR = 256;  // samples that a thread hands on together

// Whether our own step decodes; sets `slots` to the usual number of rows if it is 0.
bool uses_own(const Bundle& bundle, const std::string& step, std::int64_t& slots) {
  const bool own = step_of(bundle, step) == "own";
  if (slots == 0) slots = own ? SLOTS_OF_OWN : SLOTS_OF_GRAPH;
  if (!own) check_own_step(bundle);
  return own;
}

template <class Real>
std::unique_ptr<Backend<Real>> open(const Bundle& bundle, const std::string& step, std::int64_t& slots) {
  return uses_own(bundle, step, slots) ? make_own_backend<Real>(bundle) : make_backend<Real>(bundle, true);
}

template <class Real>
void check(const Bundle& bundle) {
  if (bundle.is_transformer()) make_transformer_step<Real>(bundle);
  else make_step<Real>(bundle);
}

}  // namespace

bool has_own_step(const Bundle& bundle) { return !bundle.is_grammar() && bundle.has(STEP_WEIGHTS); }

void check_own_step(const Bundle& bundle) {
  if (!has_own_step(bundle)) return;
  if (bundle.dtype == "float64") check<double>(bundle);
  else check<float>(bundle);
}

std::string step_of(const Bundle& bundle, const std::string& step) {
  if (bundle.is_grammar()) return "";
  return step == "own" && has_own_step(bundle) ? "own" : "graph";
}

void require_predictor(const Bundle& bundle) {
  if (bundle.predicts) return;
  throw UserError(bundle.folder.string() + ": holds a generator, expected a predictor; `cgen train seq2seq` makes one, " +
                  "and with --direct a generator answers by itself (in Python Generator.load opens it)");
}

void require_generator(const Bundle& bundle) {
  if (!bundle.predicts) return;
  throw UserError(bundle.folder.string() + ": holds a predictor, expected a generator; `cgen train recombine` and " +
                  "`cgen train csl` make generators; a predictor answers `cgen predict` and `cgen evaluate`, without --direct");
}

std::unique_ptr<Generator> open_generator(const Bundle& bundle, const std::string& step, std::int64_t& slots) {
  if (bundle.is_grammar()) {
    if (slots == 0) slots = SLOTS_OF_GRAMMAR;
    return make_grammar(bundle);
  }
  if (bundle.dtype == "float64") return make_generator<double>(bundle, open<double>(bundle, step, slots));
  return make_generator<float>(bundle, open<float>(bundle, step, slots));
}

std::unique_ptr<Predictor> open_predictor(const Bundle& bundle, const std::string& step, std::int64_t beam,
                                          std::int64_t& slots) {
  if (beam > 1 && slots == 0) slots = SLOTS_OF_BEAM;
  if (bundle.is_transformer()) {
    return uses_own(bundle, step, slots) ? make_own_transformer(bundle) : make_transformer(bundle);
  }
  if (bundle.dtype == "float64") return make_predictor<double>(bundle, open<double>(bundle, step, slots));
  return make_predictor<float>(bundle, open<float>(bundle, step, slots));
}

std::unique_ptr<Predictor> open_writer(const Bundle& bundle, const std::string& step, std::int64_t& slots) {
  if (bundle.dtype == "float64") return make_writer<double>(bundle, open<double>(bundle, step, slots));
  return make_writer<float>(bundle, open<float>(bundle, step, slots));
}

}  // namespace compgen
