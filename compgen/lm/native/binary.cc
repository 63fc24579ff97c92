#include "binary.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "lm/bhiksha.hh"
#include "lm/binary_format.hh"
#include "lm/model.hh"
#include "lm/read_arpa.hh"
#include "util/file.hh"
#include "util/file_piece.hh"
#include "util/mmap.hh"

namespace lm::ngram {
void ReadHeader(int file, Parameters& found);  // which KenLM has, but does not declare; its version is fixed
}

namespace compgen {
namespace {

namespace ngram = lm::ngram;
namespace trie = lm::ngram::trie;

using Counts = std::vector<std::uint64_t>;  // of n-grams, by their length

void require(bool holds) {
  if (!holds) throw std::runtime_error("damaged: its header and its tables do not agree");
}

// The tables of a file, which stand one behind another.
class Tables {
 public:
  Tables(std::uint8_t* begin, std::uint64_t size) : at_(begin), left_(size) {}

  // The first bytes of the next table.
  const std::uint8_t* peek(std::uint64_t size) const {
    if (size > left_) throw std::runtime_error("cut short");
    return at_;
  }
  std::uint8_t* next(std::uint64_t size) {
    peek(size);
    left_ -= size;
    return std::exchange(at_, at_ + size);
  }

 private:
  std::uint8_t* at_;
  std::uint64_t left_;
};

template <class Cell>
using HashTable = util::ProbingHashTable<Cell, util::IdentityHash>;

template <class Cell>
HashTable<Cell> hash_table(Tables& file, std::uint64_t entries, float multiplier) {
  const std::uint64_t size = HashTable<Cell>::Size(entries, multiplier);
  const HashTable<Cell> table(file.next(size), size);
  const auto is_empty = [](const Cell& cell) { return cell.GetKey() == 0; };  // where a search ends
  require(std::any_of(table.RawBegin(), table.RawEnd(), is_empty));
  return table;
}

template <class Value>
void check_hashed(Tables& file, const Counts& counts, float multiplier) {
  std::uint32_t head[2];  // a version, and the number of words
  std::memcpy(head, file.next(sizeof head), sizeof head);
  require(head[1] <= counts[0] + 1);
  const auto words = hash_table<ngram::ProbingVocabularyEntry>(file, counts[0], multiplier);
  require(std::all_of(words.RawBegin(), words.RawEnd(), [&](const ngram::ProbingVocabularyEntry& cell) {
    return cell.GetKey() == 0 || cell.value <= counts[0];
  }));
  file.next((counts[0] + 1) * sizeof(typename Value::Weights));  // with one for words that are not known
  for (std::size_t n = 1; n + 1 < counts.size(); ++n) {
    hash_table<typename Value::ProbingEntry>(file, counts[n], multiplier);
  }
  hash_table<ngram::detail::ProbEntry>(file, counts.back(), multiplier);
}

// The first of a trie's compressed pointers, of which KenLM takes for granted that it is 0; they stand behind a head of 8
// bytes, on a multiple of 8.
std::uint64_t first_pointer(const std::uint8_t* table) {
  const std::uint8_t* const head = table + (8 - reinterpret_cast<std::uintptr_t>(table) % 8) % 8;
  std::uint64_t first = 0;
  std::memcpy(&first, head + 8, sizeof first);
  return first;
}

template <class Quant, class Bhiksha>
void check_trie(Tables& file, const Counts& counts) {
  ngram::Config config;
  std::uint64_t words = 0;
  std::memcpy(&words, file.next(ngram::SortedVocabulary::Size(counts[0], config)), sizeof words);
  require(words <= counts[0]);
  if constexpr (std::is_same_v<Quant, ngram::SeparatelyQuantize>) {
    config.prob_bits = file.peek(3)[1], config.backoff_bits = file.peek(3)[2];
    for (const auto bits : {config.prob_bits, config.backoff_bits}) require(bits >= 1 && bits <= 25);
  }
  file.next(Quant::Size(counts.size(), config));
  const auto* const unigrams = reinterpret_cast<trie::UnigramValue*>(file.next(trie::Unigram::Size(counts[0])));
  for (std::uint64_t word = 0; word <= words; ++word) {
    require(unigrams[word].next <= unigrams[word + 1].next && unigrams[word + 1].next <= counts[1]);
  }
  for (std::size_t n = 1; n + 1 < counts.size(); ++n) {
    if constexpr (std::is_same_v<Bhiksha, trie::ArrayBhiksha>) {
      if (n == 1) config.pointer_bhiksha_bits = file.peek(2)[1];
    }
    using Middle = trie::BitPackedMiddle<Bhiksha>;
    const std::uint8_t bits = Quant::MiddleBits(config);
    std::uint8_t* const table = file.next(Middle::Size(bits, counts[n], counts[0], counts[n + 1], config));
    if constexpr (std::is_same_v<Bhiksha, trie::ArrayBhiksha>) require(first_pointer(table) == 0);
    Middle middle(table, bits, counts[n], counts[0], counts[n + 1], trie::BitPackedLongest(), config);
    trie::NodeRange longer;  // the n-grams that are longer by a word
    for (std::uint64_t entry = 0; entry < counts[n]; ++entry) {
      middle.ReadEntry(entry, longer);
      require(longer.begin <= longer.end && longer.end <= counts[n + 1]);
    }
  }
  file.next(trie::BitPackedLongest::Size(Quant::LongestBits(config), counts.back(), counts[0]));
}

void check_header(const ngram::Parameters& header, std::uint32_t kind, std::uint64_t size) {
  unsigned char listed = 0;
  std::memcpy(&listed, &header.fixed.has_vocabulary, 1);
  require(header.fixed.order >= 2 && header.fixed.order <= KENLM_MAX_ORDER && kind <= ngram::QUANT_ARRAY_TRIE);
  require(listed <= 1 && header.fixed.probing_multiplier >= 1 && header.fixed.probing_multiplier <= 1000);
  for (const std::uint64_t count : header.counts) require(count <= size);  // n-grams have no less than a byte each
}

// KenLM makes room for as many n-grams as the head of a text says, and its products of these numbers can overflow.
void check_text(const char* path, const util::scoped_fd& file) {
  constexpr std::uint64_t MOST = std::uint64_t{1} << 40;  // of a file that is packed, or a stream, which has no size
  char head[2] = {};
  const bool is_text = pread(file.get(), head, sizeof head, 0) == sizeof head && (head[0] == '\\' || head[0] == '#' ||
                                                                                 head[0] == '\n');
  Counts counts;
  util::FilePiece text(path);
  lm::ReadARPACounts(text, counts);
  const std::uint64_t most = is_text ? util::SizeOrThrow(file.get()) : MOST;
  for (const std::uint64_t count : counts) {
    if (count > most) throw std::runtime_error("cut short or damaged: its head says that there are more n-grams");
  }
}

}  // namespace

void check_model(const char* path) {
  const util::scoped_fd file(util::OpenReadOrThrow(path));
  if (!ngram::IsBinaryFormat(file.get())) return check_text(path, file);
  const std::uint64_t size = util::SizeOrThrow(file.get());
  ngram::Parameters header;
  ngram::ReadHeader(file.get(), header);
  const std::uint64_t begin = std::min<std::uint64_t>(ALIGN8(lseek(file.get(), 0, SEEK_CUR)), size);
  std::uint32_t kind = 0;
  std::memcpy(&kind, &header.fixed.model_type, sizeof kind);
  check_header(header, kind, size);
  util::scoped_memory content;
  util::MapRead(util::LAZY, file.get(), 0, size, content);
  Tables tables(static_cast<std::uint8_t*>(content.get()) + begin, size - begin);
  const Counts& counts = header.counts;
  switch (kind) {
    case ngram::PROBING: return check_hashed<ngram::BackoffValue>(tables, counts, header.fixed.probing_multiplier);
    case ngram::REST_PROBING: return check_hashed<ngram::RestValue>(tables, counts, header.fixed.probing_multiplier);
    case ngram::TRIE: return check_trie<ngram::DontQuantize, trie::DontBhiksha>(tables, counts);
    case ngram::QUANT_TRIE: return check_trie<ngram::SeparatelyQuantize, trie::DontBhiksha>(tables, counts);
    case ngram::ARRAY_TRIE: return check_trie<ngram::DontQuantize, trie::ArrayBhiksha>(tables, counts);
    case ngram::QUANT_ARRAY_TRIE: return check_trie<ngram::SeparatelyQuantize, trie::ArrayBhiksha>(tables, counts);
  }
}

}  // namespace compgen
