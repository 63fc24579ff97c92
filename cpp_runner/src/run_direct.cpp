#include "run_direct.h"

#include <algorithm>
#include <iostream>
#include <set>

#include "direct.h"
#include "errors.h"
#include "interrupts.h"
#include "open.h"
#include "output.h"
#include "parsing.h"
#include "sources.h"
#include "text.h"

namespace compgen {
namespace {

// A network's answers: none to a source without tokens, or with one that it does not know.
std::vector<Tokens> by_network(const Options& options, const Bundle& bundle, const std::vector<Tokens>& sources) {
  Answering how;
  how.slots = options.sampling.slots, how.workers = options.sampling.workers;
  const auto writer = open_writer(bundle, options.step, how.slots);
  const auto known = [size = static_cast<std::int32_t>(bundle.vocabulary.size())](const Tokens& source) {
    return std::all_of(source.begin(), source.end(), [size](std::int32_t token) { return token < size; });
  };
  std::vector<Tokens> asked;
  bool any = false;
  for (const auto& source : sources) {
    any = any || !source.empty();
    if (!source.empty() && known(source)) asked.push_back(source);
  }
  std::vector<Tokens> found(sources.size());
  if (!any) return found;
  auto answers = direct_answers(bundle, *writer, asked, how);
  std::size_t next = 0;
  for (std::size_t row = 0; row < sources.size(); ++row) {
    if (!sources[row].empty() && known(sources[row])) found[row] = std::move(answers[next++]);
  }
  return found;
}

}  // namespace

void check_direct(const Options& options, const Bundle& bundle) {
  if (options.gives("--best") || options.beam.value_or(1) > 1) {
    throw UserError("direct inference gives one answer, greedily: leave out --beam and --best");
  }
  if (!options.others.empty()) {
    throw UserError("predictors answer together, generators do not: leave out --direct or --with");
  }
  std::set<std::string> known = {"bundle", "--direct", "--input", "--output", "--workers", "--trust-code", "--beam"};
  if (!bundle.is_grammar()) known.insert({"--batch", "--step", "--raw"});
  for (const auto& name : options.given) {
    if (known.count(name) == 0) throw UserError("--direct has no use for " + name);
  }
  if (bundle.predicts) throw UserError(options.bundle + ": a predictor, expected a generator");
  if (options.input.empty()) throw UserError("say what to predict from: --input FILE, or -");
}

int run_direct(const Options& options, const Bundle& bundle) {
  const bool tsv = writes_tsv(options.out);
  const std::string text = read_all(options.input), name = options.input == "-" ? "standard input" : options.input;
  std::vector<std::string> unknown, tokens = bundle.vocabulary;
  const Form form{has_columns(options.input, text), options.raw, options.raw ? nullptr : &unknown};
  const auto sources = parse_sources(text, name, bundle.vocabulary, form);
  if (options.raw && tsv) throw UserError("--raw writes .jsonl");
  tokens.insert(tokens.end(), unknown.begin(), unknown.end());
  check_writable(options.out);
  const auto found = bundle.is_grammar() ? GrammarParser(bundle).answers(sources, tokens, options.sampling.workers)
                                         : by_network(options, bundle, sources);
  catch_signals();  // until now a signal ends the work at once; what is written is written whole
  Output output(options.out);
  const Spelling spelling(tokens);
  std::int64_t answered = 0;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    answered += !found[k].empty();
    output.line(options.raw            ? as_json(k, found[k])
                : !tsv               ? spelling.as_json(sources[k], found[k])
                : sources[k].empty() ? ""
                                     : spelling.as_tsv(sources[k], found[k]));
  }
  output.finish();
  std::cerr << bundle.folder.string() << ": " << with_commas(answered) << " answered\n";
  return 0;
}

}  // namespace compgen
