#include "run_direct.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <set>

#include "direct.h"
#include "errors.h"
#include "interrupts.h"
#include "open.h"
#include "otherwise.h"
#include "output.h"
#include "parsing.h"
#include "record.h"
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

// Whether there is a source, and no answer.
bool lacks(const Tokens& source, const Tokens& answer) { return !source.empty() && answer.empty(); }

// What a second model answers to the sources that lack an answer, in their order.
std::vector<Answer> by_other(const Otherwise& otherwise, const std::vector<Tokens>& sources,
                             const std::vector<Tokens>& found, std::vector<std::string>& tokens) {
  std::vector<Tokens> lacking;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (lacks(sources[k], found[k])) lacking.push_back(sources[k]);
  }
  return lacking.empty() ? std::vector<Answer>() : otherwise.answers(lacking, tokens);
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
  if (options.otherwise) known.insert("--otherwise");
  else if (!bundle.is_grammar()) known.insert("--raw");
  if (options.otherwise || !bundle.is_grammar()) known.insert({"--batch", "--step"});
  for (const auto& name : options.given) {
    if (known.count(name) == 0) throw UserError("--direct has no use for " + name);
  }
  require_generator(bundle);
  if (options.input.empty()) throw UserError("say what to predict from: --input FILE, or -");
}

int run_direct(const Options& options, const Bundle& bundle) {
  const bool tsv = writes_tsv(options.out);
  check_apart(options.out, options.input);
  std::optional<Otherwise> otherwise;
  if (options.otherwise) otherwise.emplace(options);
  const std::string text = read_all(options.input);
  std::vector<std::string> unknown, tokens = bundle.vocabulary;
  const Form form{has_columns(options.input, text), options.raw, options.raw ? nullptr : &unknown};
  const auto sources = parse_sources(text, named(options.input), bundle.vocabulary, form);
  if (options.raw && tsv) throw UserError("--raw writes .jsonl");
  tokens.insert(tokens.end(), unknown.begin(), unknown.end());
  check_writable(options.out);
  const auto found = bundle.is_grammar() ? GrammarParser(bundle).answers(sources, tokens, options.sampling.workers)
                                         : by_network(options, bundle, sources);
  const auto more = otherwise ? by_other(*otherwise, sources, found, tokens) : std::vector<Answer>();
  catch_signals();  // until now a signal ends the work at once; what is written is written whole
  Output output(options.out);
  const Spelling spelling(tokens);
  std::int64_t answered = 0;
  auto next = more.begin();
  for (std::size_t k = 0; k < sources.size(); ++k) {
    answered += !found[k].empty();
    const Answer* const other = otherwise && lacks(sources[k], found[k]) ? &*next++ : nullptr;
    output.line(options.raw                    ? as_json(k, found[k])
                : tsv && sources[k].empty()    ? ""
                : tsv                          ? spelling.as_tsv(sources[k], other ? other->target : found[k])
                : other                        ? spelling.as_json(sources[k], *other, 1)
                                               : spelling.as_json(sources[k], found[k]));
  }
  output.finish();
  forget_record(options.out);
  std::cerr << printable(bundle.folder.string()) << ": " << with_commas(answered) << " answered\n";
  return 0;
}

}  // namespace compgen
