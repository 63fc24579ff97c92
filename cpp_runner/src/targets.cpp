#include "targets.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_map>

#include "errors.h"
#include "text.h"

namespace compgen {
namespace {

constexpr const char* NAME = "target grammar";
constexpr const char* MARK = "##";  // prefix of names; by itself, any token that is in no rule
constexpr const char* ARROW = "=>";
constexpr std::size_t MOST = 99;   // nonterminals of a rule
constexpr int UNITS = 2;           // unit rules on top of each other
constexpr int DEEPEST = 10'000;    // calls within one another; a stack of 8 MB has room for more
constexpr int STEPS = 65'536;       // for one part of a target: as many parts as are tried, and names that are put together
constexpr std::int32_t UNKNOWN = std::numeric_limits<std::int32_t>::max();  // a token outside the grammar
constexpr std::int32_t ANY = -1;                                            // a nonterminal, whichever

bool is_name(const std::string& symbol) { return symbol.compare(0, 2, MARK) == 0; }

TargetRule rule_of(std::string_view line, const std::string& place) {
  const auto words = split(line);
  const std::string name(words[0]);
  if (words.size() < 3 || words[1] != ARROW) {
    throw UserError(place + ": found " + quoted(line, 80) +
                    ", expected 'LHS => tokens', nonterminals on the right with ## before their names");
  }
  if (words.size() > 3 && std::count(words.begin() + 2, words.end(), MARK) > 0) {
    throw UserError(place + ": found ## among others, expected it alone: '" + name + " => ##'");
  }
  TargetRule rule{name, {words.begin() + 2, words.end()}};
  if (const auto kinds = rule.kinds().size(); kinds > MOST) {
    throw UserError(place + ": found " + std::to_string(kinds) + " nonterminals in a rule for " + name +
                    ", expected at most 99");
  }
  return rule;
}

// Throws UserError if unit rules lead from a name to itself: its derivations would be endless.
void check_units(const std::vector<TargetRule>& rules, const std::vector<std::string>& places) {
  std::map<std::string, std::set<std::string>> below;
  std::map<std::string, std::size_t> left;  // names below that have not been seen to end
  std::map<std::string, std::vector<std::string>> above;
  for (const auto& rule : rules) {
    if (!rule.is_unit()) continue;
    const auto kind = rule.kinds()[0];
    left.emplace(kind, 0);
    if (below[rule.name].insert(kind).second) ++left[rule.name], above[kind].push_back(rule.name);
  }
  std::vector<std::string> ended;
  for (const auto& [name, count] : left) {
    if (count == 0) ended.push_back(name);
  }
  for (std::size_t k = 0; k < ended.size(); ++k) {
    for (const auto& name : above[ended[k]]) {
      if (--left[name] == 0) ended.push_back(name);
    }
  }
  const auto caught = std::find_if(left.begin(), left.end(), [](const auto& entry) { return entry.second > 0; });
  if (caught == left.end()) return;
  // Each name that is left has another below it that is left, so going down comes back.
  std::vector<std::string> path = {caught->first};
  std::set<std::string> seen = {caught->first};
  for (;;) {
    const auto& under = below[path.back()];
    const auto next = *std::find_if(under.begin(), under.end(), [&](const auto& name) { return left[name] > 0; });
    path.push_back(next);
    if (!seen.insert(next).second) break;
  }
  const auto begin = std::find(path.begin(), path.end(), path.back());
  const std::set<std::string> circle(begin, path.end());
  for (std::size_t k = 0; k < rules.size(); ++k) {
    if (!rules[k].is_unit() || !circle.count(rules[k].name) || !circle.count(rules[k].kinds()[0])) continue;
    throw UserError(places[k] + ": found " + rules[k].name + " => " + rules[k].symbols[0] +
                    ", a rule of a single nonterminal in a circle (" + joined(circle, ", ") + "), expected no circle");
  }
}

// Throws UserError if no derivation from some name ends.
void check_ends(const std::vector<TargetRule>& rules, const std::vector<std::string>& places) {
  std::set<std::string> ended;
  for (bool more = true; more;) {
    more = false;
    for (const auto& rule : rules) {
      const auto kinds = rule.kinds();
      const auto ends = [&](const std::string& kind) { return ended.count(kind) > 0; };
      if (std::all_of(kinds.begin(), kinds.end(), ends)) more = ended.insert(rule.name).second || more;
    }
  }
  for (std::size_t k = 0; k < rules.size(); ++k) {
    if (ended.count(rules[k].name)) continue;
    throw UserError(places[k] + ": found " + rules[k].name +
                    ", all of whose rules lead to nonterminals without end, expected one that leads to tokens alone");
  }
}

}  // namespace

std::vector<std::string> TargetRule::kinds() const {
  std::vector<std::string> found;
  for (const auto& symbol : symbols) {
    if (is_name(symbol) && symbol != MARK) found.push_back(symbol.substr(2));
  }
  return found;
}

bool TargetRule::is_unit() const { return symbols.size() == 1 && kinds().size() == 1; }

TargetGrammar::TargetGrammar(const std::string& text) {
  std::set<std::pair<std::string, std::vector<std::string>>> seen;
  std::set<std::string> known;
  std::int64_t number = 0;
  for (const auto line : lines_of(text)) {
    const auto words = split(line);
    const std::string place = std::string(NAME) + ", line " + std::to_string(++number);
    if (words.empty() || words[0][0] == '#') continue;
    TargetRule rule = rule_of(line, place);
    if (!seen.emplace(rule.name, rule.symbols).second) continue;
    known.insert(rule.name);
    rules_.push_back(std::move(rule)), places_.push_back(place);
  }
  for (std::size_t k = 0; k < rules_.size(); ++k) {
    for (const auto& kind : rules_[k].kinds()) {
      if (!known.count(kind)) throw UserError(places_[k] + ": found ##" + kind + ", for which there is no rule");
    }
  }
  if (!known.count(ROOT)) {
    throw UserError(std::string(NAME) + ": found no rule for ROOT, expected one: targets start there");
  }
  check_units(rules_, places_);
  check_ends(rules_, places_);
}

Checker::Checker(const TargetGrammar& targets, const std::vector<std::string>& tokens) {
  std::set<std::string> names, used;
  for (const auto& rule : targets.rules()) {
    names.insert(rule.name);
    used.insert(rule.symbols.begin(), rule.symbols.end());
  }
  names_.assign(names.begin(), names.end());
  for (const auto& name : names_) number_.emplace(name, static_cast<std::int32_t>(number_.size()));
  std::map<std::string, std::int32_t> numbers;
  for (const auto& token : tokens) {
    const auto number = static_cast<std::int32_t>(numbers.size());
    numbers.emplace(token, number);
    if (!used.count(token)) others_.push_back(number);
  }
  for (const auto& rule : targets.rules()) enter(rule, numbers);
}

void Checker::enter(const TargetRule& rule, const std::map<std::string, std::int32_t>& numbers) {
  const std::int32_t name = number_.at(rule.name);
  if (rule.symbols.size() == 1 && rule.symbols[0] == MARK) {
    for (const auto token : others_) closed_[{token}].push_back(name);
    closed_[{OTHER}].push_back(name);
    return;
  }
  std::vector<std::int32_t> kinds;
  for (const auto& kind : rule.kinds()) kinds.push_back(number_.at(kind));
  if (rule.is_unit()) {
    units_[kinds[0]].push_back(name);
    return;
  }
  Symbols side;
  for (const auto& symbol : rule.symbols) {
    const auto found = numbers.find(symbol);
    side.push_back(is_name(symbol) ? ANY : found == numbers.end() ? UNKNOWN : found->second);
  }
  if (kinds.empty()) {
    closed_[side].push_back(name);
    return;
  }
  Open& open = open_[side[0]][side];
  open.pattern = Terminals<Symbols>(side, [](std::int32_t symbol) { return symbol == ANY; });
  open.rules.emplace_back(name, std::move(kinds));
}

// What names derive each part of one target, filled from the top down: a part is looked at if some rule needs it, and
// once if it occurs twice. With the names of the part's own nonterminals.
class Spans {
 public:
  // Nonterminals of the target, ascending, each with a name.
  using Types = std::vector<std::pair<std::int32_t, std::int32_t>>;
  using Names = std::set<std::pair<std::int32_t, Types>>;

  Spans(const Checker& checker, const Symbols& target, std::int64_t steps = std::numeric_limits<std::int64_t>::max())
      : checker_(checker), target_(target), letters_(target.begin(), target.end()), left_(steps) {}

  const Names& whole() {
    // Short parts first: no recursion is deep.
    for (std::size_t length = MILE; length < target_.size(); length += MILE) {
      for (std::size_t begin = 0; begin + length <= target_.size(); ++begin) cell(begin, begin + length);
    }
    return cell(0, target_.size());
  }

 private:
  using Cells = std::vector<const Names*>;

  // How deep calls are within one another.
  struct Deeper {
    explicit Deeper(int& depth) : depth_(depth) {
      if (++depth_ <= DEEPEST) return;
      throw UserError(std::string(NAME) +
                      ": found a rule whose target has too many parts within one another, expected fewer");
    }
    ~Deeper() { --depth_; }
    int& depth_;
  };

  // How much work is left for one part of the target. There are as many ways to cut it as choices of the places between a
  // rule's nonterminals, and as many results as names to the power of nonterminals; of grammars that are used, some 150.
  struct Work {
    std::int64_t& whole;  // for all parts
    int left = STEPS;
    void step() {
      if (--whole < 0) throw TooManySteps();
      if (--left >= 0) return;
      throw UserError(std::string(NAME) + ": found a rule whose target can be derived in too many ways, expected fewer");
    }
  };

  const Names& cell(std::size_t begin, std::size_t end) {
    const auto part = std::u32string_view(letters_).substr(begin, end - begin);
    const auto known = cells_.find(part);
    if (known != cells_.end()) return known->second;
    if ((left_ -= static_cast<std::int64_t>(part.size() / MILE)) < 0) throw TooManySteps();
    const Deeper deeper(depth_);
    const Names base = base_of(begin, end);
    Names found = base;
    for (int k = 0; k < UNITS && !base.empty(); ++k) {
      Names more = base;
      for (const auto& [kind, types] : found) {
        const auto units = checker_.units_.find(kind);
        if (units == checker_.units_.end()) continue;
        for (const auto name : units->second) more.emplace(name, types);
      }
      found = std::move(more);
    }
    return cells_.emplace(part, std::move(found)).first->second;
  }

  // What rules other than unit rules derive.
  Names base_of(std::size_t begin, std::size_t end) {
    Names found;
    if (end - begin == 1 && target_[begin] < 0) {
      for (std::int32_t name = 0; name < static_cast<std::int32_t>(checker_.names_.size()); ++name) {
        found.emplace(name, Types{{-target_[begin], name}});
      }
      return found;
    }
    Work work{left_};
    const Symbols span(from(begin), from(end));
    const auto closed = checker_.closed_.find(span);
    if (closed != checker_.closed_.end()) {
      for (const auto name : closed->second) found.emplace(name, Types{});
    }
    for (const auto first : {span[0], ANY}) {
      const auto open = checker_.open_.find(first);
      if (open == checker_.open_.end()) continue;
      for (const auto& [side, one] : open->second) match(one, begin, end, work, found);
      if (first == ANY) break;
    }
    return found;
  }

  void match(const Checker::Open& open, std::size_t begin, std::size_t end, Work& work, Names& found) {
    const auto& [head, tail, separators, after, least] = open.pattern;
    if (end - begin < least || !stands(head, begin) || !stands(tail, end - tail.size())) return;
    Cells cells;
    cut(open, begin + head.size(), end - tail.size(), cells, work, found);
  }

  // Adds what rules derive whose nonterminals, beyond those with `cells`, fill a part of the target.
  void cut(const Checker::Open& open, std::size_t begin, std::size_t end, Cells& cells, Work& work, Names& found) {
    const Deeper deeper(depth_);
    const std::size_t number = cells.size();
    if (number == open.pattern.separators.size()) {
      work.step();
      with(cell(begin, end), cells, [&] { combine(open, cells, work, found); });
      return;
    }
    const Symbols& separator = open.pattern.separators[number];
    for (std::size_t at = begin + 1; at + separator.size() + open.pattern.after[number] <= end; ++at) {
      if (!stands(separator, at)) continue;
      work.step();
      with(cell(begin, at), cells, [&] { cut(open, at + separator.size(), end, cells, work, found); });
    }
  }

  // Goes on with one more cell, unless nothing derives it.
  template <class Then>
  static void with(const Names& cell, Cells& cells, Then then) {
    if (cell.empty()) return;
    cells.push_back(&cell);
    then();
    cells.pop_back();
  }

  // Adds the names of the rules of a pattern whose nonterminals can be what their cells are.
  static void combine(const Checker::Open& open, const Cells& cells, Work& work, Names& found) {
    for (const auto& [name, kinds] : open.rules) {
      std::set<Types> together = {{}};
      for (std::size_t k = 0; k < kinds.size() && !together.empty(); ++k) {
        std::set<Types> next;
        const auto begin = cells[k]->lower_bound({kinds[k], {}});
        for (auto it = begin; it != cells[k]->end() && it->first == kinds[k]; ++it) {
          for (const auto& some : together) work.step(), add_agreed(some, it->second, next);
        }
        together = std::move(next);
      }
      for (const auto& types : together) found.emplace(name, types);
    }
  }

  // Adds the union, unless they differ on a nonterminal.
  static void add_agreed(const Types& some, const Types& other, std::set<Types>& found) {
    Types both;
    std::set_union(some.begin(), some.end(), other.begin(), other.end(), std::back_inserter(both));
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (std::adjacent_find(both.begin(), both.end(), same) == both.end()) found.insert(std::move(both));
  }

  bool stands(const Symbols& part, std::size_t at) const { return std::equal(part.begin(), part.end(), from(at)); }
  Symbols::const_iterator from(std::size_t at) const { return target_.begin() + static_cast<std::ptrdiff_t>(at); }

  const Checker& checker_;
  const Symbols& target_;
  const std::u32string letters_;                          // the target's symbols, as letters
  std::unordered_map<std::u32string_view, Names> cells_;  // by their letters, which are views of letters_
  std::int64_t left_;                                     // steps
  int depth_ = 0;
};

std::vector<Signature> Checker::signatures(const Symbols& target) const {
  std::vector<Signature> found;
  Spans spans(*this, target);
  for (const auto& [name, types] : spans.whole()) {
    Signature one = {names_[static_cast<std::size_t>(name)]};
    for (const auto& [nonterminal, kind] : types) one.push_back(names_[static_cast<std::size_t>(kind)]);
    found.push_back(std::move(one));
  }
  return found;
}

bool Checker::derives_soon(const Symbols& target, std::int64_t steps) const {
  try {
    Spans spans(*this, target, steps);
    return spans.whole().count({number_.at(ROOT), {}}) > 0;
  } catch (const TooManySteps&) {
    return false;
  }
}

}  // namespace compgen
