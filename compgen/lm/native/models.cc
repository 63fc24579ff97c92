#include "models.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <new>

#include "ahead.h"
#include "binary.h"
#include "errors.h"
#include "lm/binary_format.hh"
#include "lm/enumerate_vocab.hh"
#include "lm/model.hh"
#include "recurrent.h"

namespace compgen {
namespace {

namespace ngram = lm::ngram;

constexpr std::size_t AHEAD = 6;  // tokens between asking for memory and using it

struct Place {
  std::size_t at = 0, sentence = 0, before = 0;  // the token, its sentence, the tokens before it there
};

template <class Kind>
class Typed final : public Model {
 public:
  Typed(const char* path, const ngram::Config& config) : path_(path), model_(path, config), ahead_(model_) {
    typename Kind::State after;
    const lm::WordIndex unknown = model_.GetVocabulary().NotFound();
    lacks_unknown_ = model_.FullScore(model_.NullContextState(), unknown, after).prob == config.unknown_missing_logprob;
  }

  void score(const Sentences& sentences, Scores& scores) const override {
    const std::size_t tokens = sentences.tokens();
    scores.log10.resize(tokens);
    scores.matched.resize(tokens);
    scores.known.resize(tokens);
    find(sentences, scores.ids);
    const lm::WordIndex unknown = model_.GetVocabulary().NotFound();
    Place ahead;
    for (std::size_t i = 0; i < AHEAD; ++i) fetch(sentences, scores.ids, ahead);
    std::size_t at = 0;
    for (const std::uint32_t length : sentences.lengths) {
      typename Kind::State states[2] = {model_.BeginSentenceState(), {}};
      for (std::uint32_t i = 0; i < length; ++i, ++at) {
        fetch(sentences, scores.ids, ahead);
        const auto& state = states[i % 2];
        const lm::FullScoreReturn found = model_.FullScore(state, scores.ids[at], states[(i + 1) % 2]);
        if (!(found.prob <= 0)) throw UserError(path_ + ": found a probability that is no number");
        scores.log10[at] = found.prob;
        scores.matched[at] = scores.ids[at] == unknown ? 0 : found.ngram_length;
        scores.known[at] = state.length;
      }
    }
    if (lacks_unknown_ && std::count(scores.matched.begin(), scores.matched.end(), 0)) met_unknown_ = true;
  }

  std::string remark() const override {
    if (!met_unknown_) return "";
    return path_ + ": has no <unk>, so KenLM gives words that it does not know the probability 1e-100: read the perplexity " +
           "without them, or take a model with <unk>, as `cgen lm train` makes";
  }

 private:
  // The ids of all tokens, before any is scored: a look-up does not wait for those before it.
  void find(const Sentences& sentences, std::vector<std::uint32_t>& ids) const {
    const auto& vocabulary = model_.GetVocabulary();
    ids.resize(sentences.tokens());
    auto word = sentences.words.begin();
    auto id = ids.begin();
    for (const std::uint32_t length : sentences.lengths) {
      for (std::uint32_t i = 1; i < length; ++i, ++word) {
        *id++ = vocabulary.Index(StringPiece(word->data(), word->size()));
      }
      *id++ = vocabulary.EndSentence();
    }
  }

  // Asks for what the token at a place will need, and goes to the next.
  __attribute__((always_inline)) void fetch(const Sentences& sentences, const std::vector<std::uint32_t>& ids,
                                            Place& place) const {
    if (place.at == ids.size()) return;
    ahead_.fetch(&ids[place.at++], place.before++);
    if (place.before == sentences.lengths[place.sentence]) ++place.sentence, place.before = 0;
  }

  std::string path_;
  Kind model_;
  Ahead<Kind> ahead_;
  bool lacks_unknown_ = false;  // of which binary models say nothing but that KenLM has put in a probability
  mutable std::atomic<bool> met_unknown_{false};
};

class Words : public lm::EnumerateVocab {
 public:
  void Add(lm::WordIndex, const StringPiece& word) override { found.add({word.data(), word.size()}); }

  Vocabulary found;
};

class Lines : public lm::EnumerateVocab {
 public:
  void Add(lm::WordIndex, const StringPiece& word) override {
    std::fwrite(word.data(), 1, word.size(), stdout);
    std::fputc('\n', stdout);
  }
};

// A message of KenLM's without the place in its sources, which it may begin with: `FILE:LINE in FUNCTION threw NAME because
// `CONDITION'.`, and a line end. It can hold all of a line that is no model's, however long: a regular expression of C++
// would need a call for each of its characters.
std::string plain(const std::string& message) {
  const std::size_t threw = message.find(" threw "), end = message.find(".\n");
  return one_line(threw < end && end != std::string::npos ? message.substr(end + 2) : message);
}

std::unique_ptr<Model> open(const std::string& path, lm::EnumerateVocab* words) {
  ngram::Config config;
  config.show_progress = false;
  config.messages = nullptr;
  config.enumerate_vocab = words;
  const char* name = path.c_str();
  try {
    check_model(name);
    ngram::ModelType type = ngram::PROBING;  // of text, the ARPA format, too
    ngram::RecognizeBinary(name, type);
    switch (type) {
      case ngram::PROBING: return std::make_unique<Typed<ngram::ProbingModel>>(name, config);
      case ngram::REST_PROBING: return std::make_unique<Typed<ngram::RestProbingModel>>(name, config);
      case ngram::TRIE: return std::make_unique<Typed<ngram::TrieModel>>(name, config);
      case ngram::QUANT_TRIE: return std::make_unique<Typed<ngram::QuantTrieModel>>(name, config);
      case ngram::ARRAY_TRIE: return std::make_unique<Typed<ngram::ArrayTrieModel>>(name, config);
      case ngram::QUANT_ARRAY_TRIE: return std::make_unique<Typed<ngram::QuantArrayTrieModel>>(name, config);
    }
    throw std::runtime_error("of a kind that is not known here");
  } catch (const std::bad_alloc&) {
    throw UserError(path + ": not enough memory for this model");
  } catch (const std::exception& error) {
    throw UserError(path + ": not a model that KenLM can read: " + plain(error.what()));
  }
}

// Mixtures of models with different words do not sum to one; `check_vocabularies` in compgen/lm/mixture.py says the same.
void require_one_vocabulary(const std::vector<std::string>& paths, const std::vector<Vocabulary>& known) {
  for (std::size_t m = 1; m < known.size(); ++m) {
    if (known[m] != known[0]) {
      throw UserError("mixed vocabularies: " + paths[0] + " knows " + with_commas(known[0].words) + " words, " + paths[m] +
                      " " + with_commas(known[m].words) + " or others; estimate both from texts with the same words, " +
                      "for instance the second from the first's text and more");
    }
  }
}

}  // namespace

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

void Vocabulary::add(std::string_view word) {
  if (word.empty() || word == "<s>" || word == "</s>" || word == "<unk>") return;
  ++words;
  sum += std::hash<std::string_view>()(word);
}

Models open_models(const std::vector<std::string>& paths, std::size_t threads, bool mixed) {
  for (const std::string& path : paths) {
    std::error_code none;
    if (!is_recurrent(path) && !std::filesystem::is_regular_file(path, none)) {
      throw UserError(path + ": no such file, expected a model of KenLM");
    }
  }
  Models models;
  std::vector<Vocabulary> known;
  for (const std::string& path : paths) {
    Words words;
    const bool compared = mixed && paths.size() > 1;
    if (is_recurrent(path)) {
      models.push_back(open_recurrent(path, threads));
      if (compared) words.found = words_of_bundle(path);
    } else {
      models.push_back(open(path, compared ? &words : nullptr));
    }
    known.push_back(words.found);
  }
  require_one_vocabulary(paths, known);
  return models;
}

void list_words(const std::string& path) {
  Lines words;
  open(path, &words);
}

}  // namespace compgen
