// compgen-ngram [--threads N] [--words] [MODEL...] <TEXT
//
// Scores a text, a sentence a line, by any number of KenLM's models at once. For each block of lines it writes, in the
// machine's byte order, what numpy can take as it is:
//
//   uint32 sentences, uint32 tokens (those of the text and one end for each sentence)
//   uint32 tokens of each sentence
//   for each model: float32 log10 probability of each token; uint8 length of the n-gram that it was found with, 0 for a
//   word that is not in the vocabulary; uint8 words of history that the model knew before it
//
// Without models it only checks the text. With --words it reads no text, and writes the words of the models, one a line.
// Bad text and bad models are one message and exit code 2.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lm/enumerate_vocab.hh"
#include "lm/model.hh"

namespace {

constexpr std::size_t CHUNK = 1 << 20;  // bytes of text that a thread takes at a time

namespace ngram = lm::ngram;

struct TextError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Scores {
  std::vector<float> log10;
  std::vector<std::uint8_t> matched, known;
};

// A model of any of KenLM's kinds; one virtual call a sentence.
class Scorer {
 public:
  virtual ~Scorer() = default;
  virtual void score(const std::vector<StringPiece>& words, Scores& scores) const = 0;
};

template <class Model>
class Typed : public Scorer {
 public:
  Typed(const char* path, const ngram::Config& config) : model_(path, config) {}

  void score(const std::vector<StringPiece>& words, Scores& scores) const override {
    const std::size_t first = scores.log10.size(), size = first + words.size() + 1;
    scores.log10.resize(size);
    scores.matched.resize(size);
    scores.known.resize(size);
    const auto& vocabulary = model_.GetVocabulary();
    typename Model::State states[2] = {model_.BeginSentenceState(), {}};
    for (std::size_t i = 0; i <= words.size(); ++i) {
      const lm::WordIndex word = i < words.size() ? vocabulary.Index(words[i]) : vocabulary.EndSentence();
      const auto& state = states[i % 2];
      const lm::FullScoreReturn found = model_.FullScore(state, word, states[(i + 1) % 2]);
      scores.log10[first + i] = found.prob;
      scores.matched[first + i] = word == vocabulary.NotFound() ? 0 : found.ngram_length;
      scores.known[first + i] = state.length;
    }
  }

 private:
  Model model_;
};

using Scorers = std::vector<std::unique_ptr<Scorer>>;

struct Block {
  std::vector<std::uint32_t> lengths;
  std::vector<Scores> models;
  std::exception_ptr error;
};

// Bytes of the character of UTF-8 that begins here, 0 if none does.
std::size_t character(const unsigned char* at, const unsigned char* end) {
  if (*at < 0x80) return 1;
  std::size_t length = *at >= 0xF0 ? 4 : *at >= 0xE0 ? 3 : 2;
  if (*at < 0xC2 || *at > 0xF4 || static_cast<std::size_t>(end - at) < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at[i] & 0xC0) != 0x80) return 0;
  if ((*at == 0xE0 && at[1] < 0xA0) || (*at == 0xED && at[1] > 0x9F)) return 0;
  if ((*at == 0xF0 && at[1] < 0x90) || (*at == 0xF4 && at[1] > 0x8F)) return 0;
  return length;
}

// What separates words: KenLM's blanks, and no other white space of Unicode. lmplz takes NUL for a blank too, and query
// vertical tab and form feed; these are refused below, as all other control characters are.
bool blank(char character) { return character == ' ' || character == '\t' || character == '\r'; }

std::string at_line(std::uint64_t line, const std::string& what) { return "line " + std::to_string(line) + ": " + what; }

// The end of the word that begins at `at`; `line` is for messages.
const char* word_end(const char* at, const char* end, std::uint64_t line) {
  const char* begin = at;
  while (at < end) {
    const auto* byte = reinterpret_cast<const unsigned char*>(at);
    if (*byte > 0x20 && *byte < 0x7F) {
      ++at;
      continue;
    }
    if (blank(*at)) break;
    if (*byte < 0x20 || *byte == 0x7F) {
      char code[8];
      std::snprintf(code, sizeof code, "0x%02X", *byte);
      throw TextError(at_line(line, "found the control character " + std::string(code)));
    }
    const std::size_t length = character(byte, reinterpret_cast<const unsigned char*>(end));
    if (!length) throw TextError(at_line(line, "found bytes that are not UTF-8"));
    at += length;
  }
  if (*begin == '<') {
    for (const char* special : {"<s>", "</s>", "<unk>"})
      if (StringPiece(begin, at - begin) == StringPiece(special))
        throw TextError(at_line(line, "found " + std::string(special) + ", which has a meaning of its own in a model"));
  }
  return at;
}

void score_line(const char* at, const char* end, std::uint64_t line, const Scorers& models, Block& block,
                std::vector<StringPiece>& words) {
  words.clear();
  while (true) {
    while (at < end && blank(*at)) ++at;
    if (at == end) break;
    const char* stop = word_end(at, end, line);
    words.emplace_back(at, stop - at);
    at = stop;
  }
  if (words.empty()) return;  // a blank line is no sentence
  block.lengths.push_back(static_cast<std::uint32_t>(words.size() + 1));
  for (std::size_t m = 0; m < models.size(); ++m) models[m]->score(words, block.models[m]);
}

void score(const std::string& text, std::uint64_t line, const Scorers& models, Block& block) {
  try {
    block.lengths.clear();
    block.models.resize(models.size());
    for (Scores& scores : block.models) {
      scores.log10.clear();
      scores.matched.clear();
      scores.known.clear();
    }
    std::vector<StringPiece> words;
    const char *at = text.data(), *end = at + text.size();
    if (line == 1 && text.compare(0, 3, "\xEF\xBB\xBF") == 0) at += 3;  // a byte order mark
    while (at < end) {
      const char* stop = static_cast<const char*>(std::memchr(at, '\n', end - at));
      if (!stop) stop = end;
      score_line(at, stop, line++, models, block, words);
      at = stop + 1;
    }
  } catch (...) {
    block.error = std::current_exception();
  }
}

// About CHUNK bytes that end where a line does.
bool read_chunk(std::string& rest, std::string& chunk) {
  chunk = rest;
  rest.clear();
  std::size_t searched = 0;
  while (true) {
    const std::size_t had = chunk.size();
    chunk.resize(had + CHUNK);
    chunk.resize(had + std::fread(&chunk[had], 1, CHUNK, stdin));
    if (chunk.size() == had) return had > 0;  // the end of the text
    const std::size_t last = chunk.rfind('\n');
    if (last != std::string::npos && last >= searched) {
      rest.assign(chunk, last + 1, std::string::npos);
      chunk.resize(last + 1);
      return true;
    }
    searched = chunk.size();
  }
}

template <class T>
void put(const std::vector<T>& values) {
  if (std::fwrite(values.data(), sizeof(T), values.size(), stdout) != values.size())
    throw std::runtime_error("the scores cannot be written");
}

void write(const Block& block) {
  if (block.error) std::rethrow_exception(block.error);
  std::uint32_t tokens = 0;
  for (std::uint32_t length : block.lengths) tokens += length;
  put(std::vector<std::uint32_t>{static_cast<std::uint32_t>(block.lengths.size()), tokens});
  put(block.lengths);
  for (const Scores& scores : block.models) {
    put(scores.log10);
    put(scores.matched);
    put(scores.known);
  }
}

void score_all(const Scorers& models, std::size_t threads) {
  std::string rest;
  std::vector<std::string> chunks(threads);  // these and the blocks keep their memory from one round to the next
  std::vector<Block> blocks(threads);
  std::uint64_t line = 1;
  for (bool more = true; more;) {
    std::size_t filled = 0;
    while (filled < threads && (more = read_chunk(rest, chunks[filled]))) ++filled;
    std::vector<std::thread> workers;
    for (std::size_t i = 0; i < filled; ++i) {
      const std::uint64_t first = line;
      line += std::count(chunks[i].begin(), chunks[i].end(), '\n');
      if (threads == 1) {
        score(chunks[i], first, models, blocks[i]);
      } else {
        workers.emplace_back(score, std::cref(chunks[i]), first, std::cref(models), std::ref(blocks[i]));
      }
    }
    for (std::thread& worker : workers) worker.join();
    for (std::size_t i = 0; i < filled; ++i) write(blocks[i]);
  }
}

class Words : public lm::EnumerateVocab {
 public:
  void Add(lm::WordIndex, const StringPiece& word) override {
    std::fwrite(word.data(), 1, word.size(), stdout);
    std::fputc('\n', stdout);
  }
};

std::unique_ptr<Scorer> load(const char* path, lm::EnumerateVocab* words) {
  ngram::Config config;
  config.show_progress = false;
  config.messages = nullptr;
  config.enumerate_vocab = words;
  try {
    ngram::ModelType type = ngram::PROBING;  // of text, the ARPA format, too
    ngram::RecognizeBinary(path, type);
    switch (type) {
      case ngram::PROBING: return std::make_unique<Typed<ngram::ProbingModel>>(path, config);
      case ngram::REST_PROBING: return std::make_unique<Typed<ngram::RestProbingModel>>(path, config);
      case ngram::TRIE: return std::make_unique<Typed<ngram::TrieModel>>(path, config);
      case ngram::QUANT_TRIE: return std::make_unique<Typed<ngram::QuantTrieModel>>(path, config);
      case ngram::ARRAY_TRIE: return std::make_unique<Typed<ngram::ArrayTrieModel>>(path, config);
      case ngram::QUANT_ARRAY_TRIE: return std::make_unique<Typed<ngram::QuantArrayTrieModel>>(path, config);
    }
    throw std::runtime_error("of a kind that is not known here");
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string(path) + ": not a model that KenLM can read: " + error.what());
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    std::size_t threads = 1;
    bool list = false;
    Scorers models;
    for (int i = 1; i < count; ++i) {
      const std::string argument = arguments[i];
      if (argument == "--threads" && i + 1 < count) {
        threads = std::max(1L, std::strtol(arguments[++i], nullptr, 10));
      } else if (argument == "--words") {
        list = true;
      } else if (list) {
        Words words;
        load(arguments[i], &words);
      } else {
        models.push_back(load(arguments[i], nullptr));
      }
    }
    if (!list) score_all(models, threads);
    if (std::fflush(stdout)) throw std::runtime_error("the scores cannot be written");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
