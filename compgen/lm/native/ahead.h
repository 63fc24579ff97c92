// Memory that a look-up will need, asked for before it: most of the time goes into waiting for cells of large tables.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lm/model.hh"

namespace compgen {

// Of a model whose cells cannot be foretold.
template <class Kind>
class Ahead {
 public:
  explicit Ahead(const Kind&) {}

  // Asks for the cells of the token at `id`, which has so many tokens before it in its sentence.
  void fetch(const std::uint32_t* /*id*/, std::size_t /*before*/) const {}
};

// KenLM's hash tables are private members, which C++ lets nothing name but an explicit instantiation.
template <class Tag, typename Tag::Type Member>
struct Reach {
  friend typename Tag::Type member(Tag) { return Member; }
};

using Hashed = lm::ngram::detail::HashedSearch<lm::ngram::BackoffValue>;
using HashedModel = lm::ngram::detail::GenericModel<Hashed, lm::ngram::ProbingVocabulary>;
using Middle = util::ProbingHashTable<lm::ngram::BackoffValue::ProbingEntry, util::IdentityHash>;
using Longest = util::ProbingHashTable<lm::ngram::detail::ProbEntry, util::IdentityHash>;

struct SearchOf {
  using Type = Hashed HashedModel::*;
  friend Type member(SearchOf);
};
struct MiddleOf {
  using Type = std::vector<Middle> Hashed::*;
  friend Type member(MiddleOf);
};
struct LongestOf {
  using Type = Longest Hashed::*;
  friend Type member(LongestOf);
};
template struct Reach<SearchOf, &HashedModel::search_>;
template struct Reach<MiddleOf, &Hashed::middle_>;
template struct Reach<LongestOf, &Hashed::longest_>;

// Of KenLM's default kind: an n-gram's cell follows from the hash of its words.
template <>
class Ahead<lm::ngram::ProbingModel> {
 public:
  explicit Ahead(const HashedModel& model)
      : middle_(model.*member(SearchOf()).*member(MiddleOf())),
        longest_(model.*member(SearchOf()).*member(LongestOf())),
        begin_(model.GetVocabulary().BeginSentence()) {}

  // GCC takes a function that only asks for memory for one without effect, and leaves out calls that are not inline.
  __attribute__((always_inline)) void fetch(const std::uint32_t* id, std::size_t before) const {
    std::uint64_t hash = *id;
    const std::size_t words = std::min(before + 1, middle_.size() + 1);  // of the history, with the sentence's begin
    for (std::size_t n = 1; n <= words; ++n) {
      hash = lm::ngram::detail::CombineWordHash(hash, n <= before ? id[-static_cast<std::ptrdiff_t>(n)] : begin_);
      if (n <= middle_.size()) __builtin_prefetch(middle_[n - 1].Ideal(hash));
      else __builtin_prefetch(longest_.Ideal(hash));
    }
  }

 private:
  const std::vector<Middle>& middle_;
  const Longest& longest_;
  std::uint32_t begin_;
};

}  // namespace compgen
