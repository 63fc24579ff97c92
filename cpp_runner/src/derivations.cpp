#include "derivations.h"

#include <algorithm>

#include "bundled_grammar.h"
#include "errors.h"
#include "exchange.h"
#include "numbers.h"
#include "random.h"
#include "text.h"
#include "ways.h"

namespace compgen {
namespace {

constexpr std::uint32_t ATTEMPTS = 1000;  // for one sample
constexpr std::int64_t BEYOND = 5;        // levels below the deepest, for derivations that cannot end there

template <class Number>
std::size_t at(Number number) {
  return static_cast<std::size_t>(number);
}

// One side of all rules, one behind the other, in the ids of the vocabulary, and -i for NT_i.
struct Side {
  Symbols symbols;
  std::vector<std::int64_t> starts = {0};  // (rules + 1)
  std::vector<std::int64_t> terminals;     // (rules) how many symbols are tokens

  void add(const Symbols& side, const std::vector<std::int32_t>& ids) {
    terminals.push_back(std::count_if(side.begin(), side.end(), [](std::int32_t symbol) { return symbol >= 0; }));
    for (const auto symbol : side) symbols.push_back(symbol < 0 ? symbol : ids[at(symbol)]);
    starts.push_back(static_cast<std::int64_t>(symbols.size()));
  }
  std::int64_t count(std::int64_t rule) const { return starts[at(rule + 1)] - starts[at(rule)]; }
};

// A bundle's grammar laid out for drawing, at no temperature yet.
struct Parts : BundledGrammar {
  explicit Parts(const Bundle& bundle) : BundledGrammar(bundle), ways(grammar, targets.get()) {
    times.assign(grammar.rules.size() * at(grammar.most), 0);
    for (std::size_t number = 0; number < grammar.rules.size(); ++number) {
      const Rule& rule = grammar.rules[number];
      source.add(rule.source, ids), target.add(rule.target, ids);
      for (const auto symbol : rule.target) {
        if (symbol < 0) ++times[number * at(grammar.most) + at(-symbol - 1)];
      }
    }
  }

  Ways ways;
  Side source, target;
  std::vector<std::int64_t> times;  // (rules, largest arity) how often each nonterminal stands in the target
};

// What all threads read: the parts at a temperature.
struct Tables {
  Tables(const Parts& all, double temperature)
      : parts(all),
        weights(all.grammar, all.states, all.slot_scores, all.rule_scores, temperature, all.settings.bias,
                all.settings.biased),
        any(all.ways, weights, [](std::int64_t) { return true; }),
        inner(all.ways, weights, [this](std::int64_t way) { return arity(way) > 0; }),
        final(all.ways, weights, [this](std::int64_t way) { return arity(way) == 0; }) {}

  std::int32_t arity(std::int64_t way) const { return parts.grammar.rules[at(parts.ways.rule[at(way)])].arity; }

  const Parts& parts;
  Weights weights;
  WayChoice any, inner, final;
};

// One thread's derivation, whose room is used again for the next.
class Derivation {
 public:
  explicit Derivation(const Tables& tables)
      : tables_(tables),
        parts_(tables.parts),
        ways_(tables.parts.ways),
        longest_(tables.parts.settings.longest),
        cache_(tables.parts.states),
        logs_(tables.weights) {}

  // Draws a sample; false if no attempt gives a derivation within the limits.
  bool draw(std::uint64_t seed, std::int64_t sample, Draw& draw) {
    for (std::uint32_t attempt = 0; attempt < ATTEMPTS; ++attempt) {
      if (!derive(seed, sample, attempt)) continue;
      draw.index = sample, draw.finished = true, draw.log_prob = score();
      draw.tokens.resize(at(source_ + 1 + target_));
      std::int32_t* const middle = write(parts_.source, 0, draw.tokens.data());
      *middle = SEP;
      write(parts_.target, 0, middle + 1);
      return true;
    }
    return false;
  }

 private:
  struct Node {
    std::int64_t slot, times;        // times: how often it stands in the target
    std::int32_t name, rule, first;  // first: of its children, who are neighbours
  };

  bool derive(std::uint64_t seed, std::int64_t sample, std::uint32_t attempt) {
    nodes_.assign(1, {0, 1, 0, 0, 0});
    levels_.assign(1, 0);
    source_ = target_ = 0;
    for (std::int64_t depth = 0; depth <= parts_.settings.most + BEYOND; ++depth) {
      const std::size_t begin = levels_.back(), end = nodes_.size();
      // With a token or more for each nonterminal; what is too long cannot get shorter.
      std::int64_t whole_source = source_, whole_target = target_;
      for (std::size_t k = begin; k < end; ++k) {
        const auto [first, second] = node_uniforms(seed, sample, static_cast<std::uint32_t>(k), attempt);
        const std::int64_t way = choose(depth, nodes_[k], first, second);
        if (way < 0) return false;
        Node& node = nodes_[k];
        node.rule = ways_.rule[at(way)], node.first = static_cast<std::int32_t>(nodes_.size());
        if (!add(whole_source, parts_.source.count(node.rule), 1)) return false;
        if (!add(whole_target, parts_.target.count(node.rule), node.times)) return false;
        source_ += parts_.source.terminals[at(node.rule)];
        target_ += parts_.target.terminals[at(node.rule)] * node.times;
        add_children(node, way);
      }
      levels_.push_back(end);
      if (nodes_.size() == end) return true;
    }
    return false;
  }

  std::int64_t choose(std::int64_t depth, const Node& node, double first, double second) {
    const auto by = [&](const WayChoice& choice) { return choice.draw(node.slot, node.name, first, second, cache_); };
    if (depth < parts_.settings.least) return by(tables_.inner);
    if (depth < parts_.settings.most) return by(tables_.any);
    const std::int64_t way = by(tables_.final);
    return way < 0 ? by(tables_.any) : way;
  }

  // Adds symbols to a length; false if it is then too long.
  bool add(std::int64_t& length, std::int64_t count, std::int64_t times) const {
    if (times > (longest_ - length) / count) return false;  // no side of a rule is empty
    length += count * times;
    return true;
  }

  void add_children(const Node parent, std::int64_t way) {
    const std::int32_t rule = parent.rule;
    for (std::int64_t k = 0; k < parts_.grammar.rules[at(rule)].arity; ++k) {
      const auto place = at(rule) * at(ways_.most) + at(k);
      // Capped, because it may double at each level; the sample is too long anyway.
      const std::int64_t times = std::min(parent.times * parts_.times[place], longest_ + 1);
      nodes_.push_back({parts_.slots[at(rule)] + k, times, ways_.below[at(way) * at(ways_.most) + at(k)], 0, 0});
    }
  }

  // log p(z), level by level, as Python adds.
  double score() {
    double total = 0;
    for (std::size_t level = 0; level + 1 < levels_.size(); ++level) {
      double sum = 0;
      for (std::size_t k = levels_[level]; k < levels_[level + 1]; ++k) {
        sum += logs_.of(nodes_[k].slot, nodes_[k].rule);
      }
      total += sum;
    }
    return total;
  }

  // Writes what a node derives, and returns the end of it; not deeper than the levels.
  std::int32_t* write(const Side& side, std::int64_t node, std::int32_t* out) const {
    const Node& one = nodes_[at(node)];
    const std::int32_t* const end = side.symbols.data() + side.starts[at(one.rule + 1)];
    for (const std::int32_t* symbol = side.symbols.data() + side.starts[at(one.rule)]; symbol != end; ++symbol) {
      if (*symbol >= 0) *out++ = *symbol;
      else out = write(side, one.first - *symbol - 1, out);
    }
    return out;
  }

  const Tables& tables_;
  const Parts& parts_;
  const Ways& ways_;
  std::int64_t longest_;
  WayChoice::Cache cache_;
  CachedLogs logs_;
  std::vector<Node> nodes_;               // level by level
  std::vector<std::size_t> levels_;       // where each begins, and the last ends
  std::int64_t source_ = 0, target_ = 0;  // tokens so far
};

class GrammarGenerator final : public Generator {
 public:
  explicit GrammarGenerator(const Bundle& bundle) : parts_(bundle) {}

  void check(const Sampling& sampling) const override {
    const auto [heat, other] = sampling.temperature;
    if (heat != other) throw UserError("a grammar has one temperature, found " + shortened(heat) + " and " + shortened(other));
    if (heat <= 0) throw UserError("a grammar draws at a temperature above 0, found " + shortened(heat));
  }

  void sample(const Sampling& sampling, const Take& take) override {
    check(sampling);
    const Tables tables(parts_, sampling.temperature[0]);
    require_end();
    in_order(sampling, [&](Exchange& exchange) { draw(tables, sampling, exchange); }, take);
  }

 private:
  void draw(const Tables& tables, const Sampling& sampling, Exchange& exchange) const {
    Derivation derivation(tables);
    for (auto range = exchange.take(sampling.slots); range.first < range.second;
         range = exchange.take(sampling.slots)) {
      std::vector<Draw> draws;
      draws.reserve(at(range.second - range.first));
      for (std::int64_t index = range.first; index < range.second && !exchange.cancelled(); ++index) {
        Draw one;
        if (!derivation.draw(sampling.seed, index, one)) {
          exchange.fail(index, std::make_exception_ptr(ExhaustedError(exhausted(index))));
          break;
        }
        draws.push_back(std::move(one));
      }
      exchange.give(std::move(draws));
    }
  }

  std::string levels() const {
    return std::to_string(parts_.settings.least) + " to about " + std::to_string(parts_.settings.most) + " levels";
  }

  std::string exhausted(std::int64_t sample) const {
    return "sample " + std::to_string(sample) + ": none of " + with_commas(ATTEMPTS) +
           " attempts gave a derivation with " + levels() + " and at most " + with_commas(parts_.settings.longest) +
           " tokens a side; raise drawing.longest or drawing.depth.most, or lower drawing.depth.least";
  }

  // Whether some derivation ends within the depth, whatever the weights.
  bool ends() const {
    const Ways& ways = parts_.ways;
    const auto arity = [&](std::int64_t way) { return parts_.grammar.rules[at(ways.rule[at(way)])].arity; };
    const auto of_name = [&](std::int64_t name, auto holds) {
      for (std::int64_t way = ways.starts[at(name)]; way < ways.starts[at(name + 1)]; ++way) {
        if (holds(way)) return true;
      }
      return false;
    };
    std::vector<bool> below(at(ways.names())), final(at(ways.names())), whole(at(ways.names()));
    for (std::int64_t name = 0; name < ways.names(); ++name) {
      final[at(name)] = of_name(name, [&](std::int64_t way) { return arity(way) == 0; });
    }
    for (std::int64_t depth = parts_.settings.most + BEYOND; depth >= 0; --depth) {
      for (std::int64_t name = 0; name < ways.names(); ++name) {
        whole[at(name)] = of_name(name, [&](std::int64_t way) {
          if (arity(way) == 0) return depth >= parts_.settings.least;
          if (depth >= parts_.settings.most && final[at(name)]) return false;
          const auto under = ways.below.begin() + way * ways.most;
          return std::all_of(under, under + arity(way), [&](std::int32_t one) { return below[at(one)]; });
        });
      }
      below = whole;
    }
    return below[0];
  }

  void require_end() const {
    if (ends()) return;
    const auto& rules = parts_.grammar.rules;
    const auto count = static_cast<std::int64_t>(rules.size());
    const auto closed = std::count_if(rules.begin(), rules.end(), [](const Rule& rule) { return rule.arity == 0; });
    if (parts_.settings.least > 0 && closed == count) {
      throw ExhaustedError(
          "nothing to recombine: every rule of the grammar is a whole example: induction found no part that examples "
          "share; give more examples, or seed rules (--seed-rules)");
    }
    throw ExhaustedError("the grammar has no derivation with " + levels() +
                    " (rules without nonterminals, which can end one: " + std::to_string(closed) + " of " +
                    std::to_string(count) + "): " +
                    (parts_.settings.least > 0 ? "lower drawing.depth.least, or " : "") +
                    "give more examples, or other seed rules and targets");
  }

  Parts parts_;
};

}  // namespace

std::unique_ptr<Generator> make_grammar(const Bundle& bundle) {
  try {
    return std::make_unique<GrammarGenerator>(bundle);
  } catch (const UserError& error) {
    throw UserError(bundle.folder.string() + ": " + error.what());
  }
}

}  // namespace compgen
