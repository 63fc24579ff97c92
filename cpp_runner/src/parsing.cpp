#include "parsing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "charts.h"
#include "errors.h"
#include "threads.h"
#include "ways.h"

namespace compgen {
namespace {

// A sequence is a string with a letter for each token, as in compgen/csl/rules.py: chr(k) is NT_k, above FIRST is tokens.
using Letters = std::u32string;
using Span = std::u32string_view;

constexpr char32_t MOST = 99, UNKNOWN = 128, FIRST = 129;
constexpr double ALIKE = 1e-9;                    // scores that differ by no more are equally good
constexpr std::int64_t STEPS = 2'000'000;         // parts of a source that are looked at; Python counts alike
constexpr std::int64_t CHECK_STEPS = 1'000'000;   // of the check of a target
constexpr std::size_t LONGEST = (1U << 15U) - 1;  // tokens of a target; it may double with each token of a source

template <class Number>
char32_t letter_of(Number token) {
  return static_cast<char32_t>(FIRST + static_cast<char32_t>(token));
}

Letters letters_of(const Symbols& side) {
  Letters found;
  for (const auto symbol : side) found += symbol < 0 ? static_cast<char32_t>(-symbol) : letter_of(symbol);
  return found;
}

// Whether a token means something in the text of rules, so that it can be in none.
bool is_reserved(const std::string& token) { return token == "###" || token.compare(0, 3, "NT_") == 0; }

// A rule with nonterminals, and the terminals of its source.
struct Open : Terminals<Letters> {
  std::int64_t rule = 0;
  Letters target;

  Open(std::int64_t number, const Rule& one)
      : Terminals(letters_of(one.source), [](char32_t letter) { return letter <= MOST; }),
        rule(number),
        target(letters_of(one.target)) {}

  // Whether nonterminals, each of one token or more, make the source a part of a sequence; they may differ.
  bool occurs_in(Span sequence) const {
    std::size_t at = 0, gap = 0;
    const auto passes = [&](const Letters& block) {
      if (block.empty()) return true;
      at = sequence.find(block, at + gap);
      gap = 0;
      if (at == Span::npos) return false;
      at += block.size();
      return true;
    };
    if (!passes(head)) return false;
    for (const auto& separator : separators) {
      ++gap;
      if (!passes(separator)) return false;
    }
    ++gap;
    return passes(tail) && at + gap <= sequence.size();
  }
};

}  // namespace

// What all threads read.
struct GrammarParser::Rules {
  explicit Rules(const Bundle& bundle)
      : all(bundle),
        weights(all.grammar, all.states, all.slot_scores, all.rule_scores, 1, 0, 0),
        letter(bundle.vocabulary.size(), UNKNOWN),
        copy(static_cast<std::int64_t>(all.grammar.rules.size())) {
    const Grammar& grammar = all.grammar;
    for (std::size_t token = 0; token < all.ids.size(); ++token) {
      letter[static_cast<std::size_t>(all.ids[token])] = letter_of(token);
    }
    read.resize(grammar.tokens.size());
    for (std::int64_t number = 0; number < copy; ++number) {
      const Rule& rule = grammar.rules[static_cast<std::size_t>(number)];
      for (const auto symbol : rule.source) {
        if (symbol >= 0) read[static_cast<std::size_t>(symbol)] = true;
      }
      if (rule.source.size() == 1 && rule.source == rule.target) identical.push_back(number);
      if (rule.arity == 0) closed[letters_of(rule.source)].emplace_back(number, letters_of(rule.target));
      else (rule.source.size() == 1 ? units : open).emplace_back(number, rule);
    }
    copying = all.settings.copying && !identical.empty();
    unit_limit = units.empty() ? 0 : all.settings.unit_limit;
    if (all.targets) check_by(*all.targets);
  }

  // A copy may be a token of a target rule that is in no rule of the grammar.
  void check_by(const TargetGrammar& targets) {
    std::vector<std::string> tokens = all.grammar.tokens;
    for (const auto& rule : targets.rules()) {
      std::copy_if(rule.symbols.begin(), rule.symbols.end(), std::back_inserter(tokens),
                   [](const std::string& symbol) { return !is_reserved(symbol); });
    }
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (const auto& token : tokens) checked.emplace(token, static_cast<std::int32_t>(checked.size()));
    checker = std::make_unique<const Checker>(targets, tokens);
  }

  BundledGrammar all;
  Weights weights;
  std::vector<char32_t> letter;         // of each id
  std::vector<bool> read;               // whether some rule has a token in its source
  std::int64_t copy;                    // the number of a rule that copies a token that no rule reads
  std::vector<std::int64_t> identical;  // rules x -> x, whose mean is what a copy weighs
  std::map<Letters, std::vector<std::pair<std::int64_t, Letters>>> closed;  // rules without nonterminals, by source
  std::vector<Open> units, open;                                            // with a single nonterminal; other ones
  bool copying = false;
  std::int64_t unit_limit = 0;
  std::map<std::string, std::int32_t> checked;  // the checker's numbers of tokens
  std::unique_ptr<const Checker> checker;
};

// The best derivations of the parts of one source, filled from the top down: a part is looked at if some rule needs it.
// Parts are addressed by their tokens, so one that occurs twice is looked at once.
class GrammarParser::Search {
 public:
  explicit Search(const Rules& rules) : rules_(rules), logs_(rules.weights) {}

  Tokens answer(const Tokens& source, const std::vector<std::string>& tokens);

 private:
  // What is below a rule on top: its score, and the target.
  struct Below {
    double score = 0;
    Letters target;
  };
  using Cell = std::map<std::int64_t, Below>;  // by the number of the rule
  using Cells = std::vector<const Cell*>;

  struct Best {
    double score = -std::numeric_limits<double>::infinity();
    const Letters* target = nullptr;
  };

  const Cell& whole() {
    const Span all = source_;
    // Short parts first: no recursion is deep.
    for (std::size_t length = MILE; length < all.size(); length += MILE) {
      for (std::size_t begin = 0; begin + length <= all.size(); ++begin) cell(all.substr(begin, length));
    }
    return cell(all);
  }

  const Cell& cell(Span span) {
    const auto known = cells_.find(span);
    if (known != cells_.end()) return known->second;
    take(static_cast<std::int64_t>(span.size() / MILE));  // a long part is more work; in Python, more memory
    return cells_.emplace(span, filled(span)).first->second;
  }

  Cell filled(Span span) {
    const Cell base = base_of(span);
    Cell found = base;
    for (std::int64_t k = 0; k < rules_.unit_limit && !base.empty(); ++k) {
      Cell more = base;
      for (const auto& unit : rules_.units) offer(more, unit, {&found});
      found = std::move(more);
    }
    return found;
  }

  // What rules other than unit rules derive.
  Cell base_of(Span span) {
    Cell found;
    const auto closed = rules_.closed.find(Letters(span));
    if (closed != rules_.closed.end()) {
      for (const auto& [rule, target] : closed->second) found.emplace(rule, Below{0, target});
    }
    if (span.size() == 1 && copied_.count(span[0])) found.emplace(rules_.copy, Below{0, Letters(span)});
    for (const auto* one : open_) {
      if (span.size() < one->least || span.substr(0, one->head.size()) != one->head) continue;
      if (span.substr(span.size() - one->tail.size()) != one->tail) continue;
      Cells cells;
      cut(*one, span.substr(one->head.size(), span.size() - one->head.size() - one->tail.size()), cells, found);
    }
    return found;
  }

  // Offers what a rule derives whose nonterminals, beyond those with `cells`, fill a part.
  void cut(const Open& open, Span body, Cells& cells, Cell& found) {
    const std::size_t number = cells.size();
    if (number == open.separators.size()) {
      with(body, cells, [&] { offer(found, open, cells); });
      return;
    }
    const Letters& separator = open.separators[number];
    const std::size_t last = body.size() - open.after[number];
    for (std::size_t at = body.find(separator, 1); at != Span::npos && at + separator.size() <= last;
         at = body.find(separator, at + 1)) {
      with(body.substr(0, at), cells, [&] { cut(open, body.substr(at + separator.size()), cells, found); });
    }
  }

  void take(std::int64_t steps) {
    if ((left_ -= steps) < 0) throw TooManySteps();
  }

  // Goes on with the cell of one more part, unless nothing derives it.
  template <class Then>
  void with(Span part, Cells& cells, Then then) {
    take(1);
    const Cell& one = cell(part);
    if (one.empty()) return;
    cells.push_back(&one);
    then();
    cells.pop_back();
  }

  // The best derivation in a cell that fills a slot; the first rule decides between equally good ones.
  Best best_of(const Cell& cell, std::int64_t slot) {
    Best best;
    for (const auto& [rule, below] : cell) {
      const double score = weight(slot, rule) + below.score;
      if (!best.target || score > best.score + ALIKE) best = {score, &below.target};
    }
    return best;
  }

  double weight(std::int64_t slot, std::int64_t rule) {
    if (rule < rules_.copy) return logs_.of(slot, rule);
    double sum = 0;
    for (const auto one : rules_.identical) sum += std::exp(logs_.of(slot, one));
    return std::log(sum / static_cast<double>(rules_.identical.size()));
  }

  // Keeps a rule's derivation over the best of each cell, if it is better than the one before and not too long.
  void offer(Cell& found, const Open& one, const Cells& cells) {
    const std::int64_t first = rules_.all.slots[static_cast<std::size_t>(one.rule)];
    std::vector<const Letters*> parts;
    double score = 0;
    for (const auto* cell : cells) {
      const Best best = best_of(*cell, first + static_cast<std::int64_t>(parts.size()));
      score += best.score, parts.push_back(best.target);
    }
    const auto known = found.find(one.rule);
    if (known != found.end() && !(score > known->second.score + ALIKE)) return;
    std::size_t length = 0;
    for (const auto letter : one.target) length += letter <= MOST ? parts[letter - 1]->size() : 1;
    if (length > LONGEST) return;
    Letters target;
    target.reserve(length);
    for (const auto letter : one.target) {
      if (letter <= MOST) target += *parts[letter - 1];
      else target += letter;
    }
    found[one.rule] = {score, std::move(target)};
  }

  const Rules& rules_;
  CachedLogs logs_;
  Letters source_;
  std::map<char32_t, std::int32_t> copied_;  // the ids of what is copied, by letter
  std::vector<const Open*> open_;            // those whose source occurs in this one
  std::unordered_map<Span, Cell> cells_;     // views of source_
  std::int64_t left_ = 0;
};

Tokens GrammarParser::Search::answer(const Tokens& source, const std::vector<std::string>& tokens) {
  source_.clear(), copied_.clear(), open_.clear(), cells_.clear(), left_ = STEPS;
  std::map<std::int32_t, char32_t> unread;
  for (const auto id : source) {
    const auto place = static_cast<std::size_t>(id);
    char32_t letter = place < rules_.letter.size() ? rules_.letter[place] : UNKNOWN;
    const bool read = letter != UNKNOWN && rules_.read[letter - FIRST];
    if (rules_.copying && !read) {
      const auto free = letter_of(rules_.read.size() + unread.size());
      letter = unread.emplace(id, letter == UNKNOWN ? free : letter).first->second;
      copied_[letter] = id;
    }
    source_ += letter;
  }
  for (const auto& one : rules_.open) {
    if (one.occurs_in(source_)) open_.push_back(&one);
  }
  Best best;
  try {
    best = best_of(whole(), 0);
  } catch (const TooManySteps&) {
    return {};
  }
  if (!best.target) return {};
  Tokens target;
  for (const auto letter : *best.target) {
    const auto found = copied_.find(letter);
    target.push_back(found != copied_.end() ? found->second : rules_.all.ids[letter - FIRST]);
  }
  if (!rules_.checker) return target;
  Symbols numbers;
  for (const auto id : target) {
    const auto known = rules_.checked.find(tokens[static_cast<std::size_t>(id)]);
    numbers.push_back(known == rules_.checked.end() ? OTHER : known->second);
  }
  return rules_.checker->derives_soon(numbers, CHECK_STEPS) ? target : Tokens();
}

GrammarParser::GrammarParser(const Bundle& bundle) {
  try {
    rules_ = std::make_unique<const Rules>(bundle);
  } catch (const UserError& error) {
    throw UserError(bundle.folder.string() + ": " + error.what());
  }
}

GrammarParser::~GrammarParser() = default;

std::vector<Tokens> GrammarParser::answers(const std::vector<Tokens>& sources, const std::vector<std::string>& tokens,
                                           int workers) const {
  std::vector<Tokens> found(sources.size());
  share(sources.size(), workers, [&] {
    return [&, search = std::make_unique<Search>(*rules_)](std::size_t row) {
      found[row] = search->answer(sources[row], tokens);
    };
  });
  return found;
}

}  // namespace compgen
