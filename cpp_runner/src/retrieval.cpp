#include "retrieval.h"

#include <algorithm>

#include "sampler.h"

namespace compgen {
namespace {

constexpr float NEAR = 0.5F;          // similarity
constexpr std::size_t SPAN = 4;       // how much longer or shorter than what is missing a second prototype's source may be
constexpr std::size_t MOST = 10'000;  // that a thread remembers the second prototypes of

constexpr std::size_t WORD = 64;

std::size_t apart(std::size_t one, std::size_t other) { return one > other ? one - other : other - one; }

// The most similar of what is offered in order, of equal ones the first: as many as are wanted of those that are near, or
// the nearest alone if none is.
class Nearest {
 public:
  // Whether one so similar would be among them.
  bool takes(float one) const {
    if (found_.empty()) return true;
    if (one <= NEAR) return one > found_.front().similarity;
    return found_.size() < Retrieval::EACH || one > found_.back().similarity;
  }

  void take(float one, std::int64_t row) {
    const auto after = std::upper_bound(found_.begin(), found_.end(), one,
                                        [](float a, const Found& b) { return a > b.similarity; });
    found_.insert(after, {one, row});
    if (found_.size() > Retrieval::EACH) found_.pop_back();
  }

  std::vector<std::int64_t> rows() const {
    std::vector<std::int64_t> rows;
    for (const auto& one : found_) {
      if (rows.empty() || one.similarity > NEAR) rows.push_back(one.row);
    }
    return rows;
  }

 private:
  struct Found {
    float similarity;
    std::int64_t row;
  };
  std::vector<Found> found_;
};

// The nearest of the allowed among `sources`; of all where none is allowed.
template <class Allowed>
std::vector<std::int64_t> nearest(const std::vector<Tokens>& sources, const Pattern& pattern, const Allowed& allowed) {
  Nearest found;
  for (std::size_t row = 0; row < sources.size(); ++row) {
    const std::size_t size = sources[row].size();
    // Lengths alone rule most of them out.
    const auto least = static_cast<std::int64_t>(apart(size, pattern.size()));
    if (!found.takes(similarity(least, size, pattern.size()))) continue;
    const float one = similarity(pattern.distance(sources[row]), size, pattern.size());
    const auto place = static_cast<std::int64_t>(row);
    if (found.takes(one) && allowed(place, one)) found.take(one, place);
  }
  return found.rows();
}

template <class Allowed>
std::vector<std::int64_t> nearest_or_any(const std::vector<Tokens>& sources, const Pattern& pattern,
                                         const Allowed& allowed) {
  auto found = nearest(sources, pattern, allowed);
  return found.empty() ? nearest(sources, pattern, [](std::int64_t, float) { return true; }) : found;
}

}  // namespace

Pattern::Pattern(const Tokens& tokens, std::int64_t vocabulary)
    : size_(tokens.size()),
      words_((tokens.size() + WORD - 1) / WORD),
      places_(static_cast<std::size_t>(vocabulary) * words_) {
  for (std::size_t place = 0; place < size_; ++place) {
    places_[static_cast<std::size_t>(tokens[place]) * words_ + place / WORD] |= std::uint64_t{1} << place % WORD;
  }
}

std::int64_t Pattern::distance(const Tokens& other) const {
  if (words_ == 0) return static_cast<std::int64_t>(other.size());
  if (words_ > 1) return long_distance(other);
  const std::size_t last = size_ - 1;
  std::uint64_t more = ~std::uint64_t{0}, less = 0;  // where a column grows, and falls, from one place to the next
  auto distance = static_cast<std::int64_t>(size_);
  for (const auto token : other) {
    const std::uint64_t same = places_[static_cast<std::size_t>(token)];
    const std::uint64_t diagonal = (((same & more) + more) ^ more) | same | less;
    const std::uint64_t up = less | ~(diagonal | more), down = diagonal & more;
    distance += static_cast<std::int64_t>(up >> last & 1) - static_cast<std::int64_t>(down >> last & 1);
    const std::uint64_t next = up << 1 | 1;
    more = down << 1 | ~(diagonal | next), less = next & diagonal;
  }
  return distance;
}

// The same, with what goes from one word of 64 places into the next.
std::int64_t Pattern::long_distance(const Tokens& other) const {
  const std::size_t last = (size_ - 1) % WORD;
  std::vector<std::uint64_t> more(words_, ~std::uint64_t{0}), less(words_, 0);
  auto distance = static_cast<std::int64_t>(size_);
  for (const auto token : other) {
    const std::uint64_t* const places = places_.data() + static_cast<std::size_t>(token) * words_;
    std::uint64_t up_before = 1, down_before = 0;
    for (std::size_t k = 0; k < words_; ++k) {
      const std::uint64_t same = places[k] | down_before;
      const std::uint64_t diagonal = (((same & more[k]) + more[k]) ^ more[k]) | same | less[k];
      const std::uint64_t up = less[k] | ~(diagonal | more[k]), down = diagonal & more[k];
      if (k + 1 == words_) {
        distance += static_cast<std::int64_t>(up >> last & 1) - static_cast<std::int64_t>(down >> last & 1);
      }
      const std::uint64_t next = up << 1 | up_before;
      more[k] = down << 1 | down_before | ~(diagonal | next), less[k] = next & diagonal;
      up_before = up >> (WORD - 1), down_before = down >> (WORD - 1);
    }
  }
  return distance;
}

float similarity(std::int64_t distance, std::size_t one, std::size_t other) {
  const std::size_t longer = std::max(one, other);
  return longer == 0 ? 1.0F : static_cast<float>(1.0 - static_cast<double>(distance) / static_cast<double>(longer));
}

Retrieval::Retrieval(const Pool& pool, std::int64_t vocabulary) : pool_(pool), vocabulary_(vocabulary) {
  for (const auto& sequence : pool.sequences()) {
    const auto middle = std::find(sequence.begin(), sequence.end(), SEP);
    sources_.emplace_back(sequence.begin(), middle);
    // Python takes a row without a separator with its padding.
    if (middle == sequence.end()) sources_.back().resize(static_cast<std::size_t>(pool.width()), PAD);
  }
}

std::vector<std::int64_t> Retrieval::choices(const Tokens& source, Known& known) const {
  auto first_ones = firsts(source);
  if (pool_.prototypes() == 1) return first_ones;
  std::vector<std::int64_t> found;
  for (const auto first : first_ones) {
    Tokens lacking;
    for (const auto token : source) {
      const bool seen = std::find(lacking.begin(), lacking.end(), token) != lacking.end();
      if (!seen && !holds(first, token)) lacking.push_back(token);
    }
    for (const auto second : seconds(lacking, known)) found.push_back(first), found.push_back(second);
  }
  return found;
}

// Sources that differ from what is asked, and with two prototypes lack a token of it.
std::vector<std::int64_t> Retrieval::firsts(const Tokens& source) const {
  return nearest_or_any(sources_, Pattern(source, vocabulary_), [&](std::int64_t row, float one) {
    return one < 1 && (pool_.prototypes() == 1 || !std::all_of(source.begin(), source.end(),
                                                               [&](std::int32_t token) { return holds(row, token); }));
  });
}

const std::vector<std::int64_t>& Retrieval::seconds(const Tokens& lacking, Known& known) const {
  if (known.size() >= MOST) known.clear();
  const auto [found, fresh] = known.try_emplace(key_of(lacking));
  if (fresh) {
    found->second = nearest_or_any(sources_, Pattern(lacking, vocabulary_), [&](std::int64_t row, float) {
      return apart(sources_[static_cast<std::size_t>(row)].size(), lacking.size()) <= SPAN;
    });
  }
  return found->second;
}

bool Retrieval::holds(std::int64_t row, std::int32_t token) const {
  const Tokens& source = sources_[static_cast<std::size_t>(row)];
  return std::find(source.begin(), source.end(), token) != source.end();
}

}  // namespace compgen
