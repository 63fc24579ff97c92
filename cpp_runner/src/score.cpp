// compgen-score BUNDLE [--threads N]: what a recurrent language model gives the tokens of sentences. It is for
// `compgen-ngram`, whose mixtures may have such models; compgen/lm/neural.py is the same in Python.
//
// A byte on standard output says that the bundle is open. Then there is an answer to each request, in the machine's
// byte order:
//
//   request: uint32 sentences, uint32 bytes; so many bytes, a line for each sentence with spaces between its words
//   answer: for each token, the end of a sentence being one, float32 log10 of its probability; then for each uint8,
//   whether the model knows it
//
// The end of standard input between two requests is its end. What a user can mend is one message and exit code 2.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend.h"
#include "bundle.h"
#include "command_line.h"
#include "errors.h"
#include "open.h"
#include "threads.h"

namespace {

using namespace compgen;

constexpr std::size_t BATCH = 64;  // sentences scored together; a step has the probabilities of all words for each
constexpr double LN10 = 2.302585092994045684;

struct Answer {
  std::vector<float> log10;
  std::vector<std::uint8_t> known;
};

void require_language_model(const Bundle& bundle) {
  const std::string where = bundle.folder.string();
  if (bundle.predicts) throw UserError(where + ": a predictor, expected a language model");
  if (bundle.is_grammar() || bundle.prototypes > 0) {
    throw UserError(where + ": a generator with prototypes or a grammar, expected a language model");
  }
  for (const Tokens& tokens : bundle.pool.sequences()) {
    const auto separator = std::find(tokens.begin(), tokens.end(), SEP);
    if (separator != tokens.end() && separator + 1 != tokens.end() && separator[1] != EOS) {
      throw UserError(where + ": a generator of pairs, expected a language model, which is trained on sentences");
    }
  }
}

template <class Real>
class Scorer {
 public:
  Scorer(const Bundle& bundle, int threads)
      : bundle_(bundle), backend_(make_backend<Real>(bundle, true)), threads_(threads) {
    for (std::size_t id = SPECIALS; id < bundle.vocabulary.size(); ++id) {
      ids_.emplace(bundle.vocabulary[id], static_cast<std::int64_t>(id));
    }
  }

  Answer score(const std::string& lines) {
    read(lines);
    Answer answer;
    answer.log10.resize(tokens_.size());
    for (const auto token : tokens_) answer.known.push_back(token != UNK);
    order_.resize(starts_.size() - 1);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return length(a) < length(b); });
    share((order_.size() + BATCH - 1) / BATCH, threads_, [&] {
      return [&](std::size_t number) { batch(number * BATCH, answer); };
    });
    return answer;
  }

 private:
  std::size_t length(std::size_t sentence) const { return starts_[sentence + 1] - starts_[sentence]; }

  // Sets the ids of all tokens, the separator for the end of a sentence, and where sentences start.
  void read(const std::string& lines) {
    tokens_.clear();
    starts_.assign(1, 0);
    for (std::size_t at = 0; at < lines.size(); ++at) {
      const std::size_t end = lines.find_first_of(" \n", at);
      if (end > at) {
        const auto found = ids_.find(lines.substr(at, end - at));
        tokens_.push_back(found == ids_.end() ? static_cast<std::int64_t>(UNK) : found->second);
      }
      at = end;
      if (lines[end] == '\n') tokens_.push_back(SEP), starts_.push_back(tokens_.size());
    }
  }

  // Scores the sentences at `first` in the order of their lengths, and those behind it.
  void batch(std::size_t first, Answer& answer) {
    const std::size_t count = std::min(BATCH, order_.size() - first), longest = length(order_[first + count - 1]);
    // ONNX Runtime adds up the products of a single row in another order than those of many.
    const auto rows = static_cast<std::int64_t>(std::max<std::size_t>(count, 2));
    const auto row_of = [&](std::int64_t row) {
      return order_[first + std::min(static_cast<std::size_t>(row), count - 1)];
    };
    Batch<Real> state(bundle_, rows, 0);
    state.rows = rows;
    std::fill(state.token.begin(), state.token.end(), BOS);
    std::vector<double> end(count);  // of the separator; the end symbol is yet to come
    for (std::size_t step = 0; step <= longest; ++step) {
      std::fill(state.position.begin(), state.position.end(), static_cast<std::int64_t>(step));
      backend_->step(state);
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::size_t sentence = row_of(row), tokens = length(sentence);
        const std::int64_t written = step < tokens ? tokens_[starts_[sentence] + step] : std::int64_t{EOS};
        state.next_token[static_cast<std::size_t>(row)] = written;
        const auto place = static_cast<std::size_t>(row);
        if (place >= count || step > tokens) continue;
        const double log10 = probability(state, row, written) / LN10;
        if (step + 1 == tokens) end[place] = log10;
        else if (step < tokens) answer.log10[starts_[sentence] + step] = static_cast<float>(log10);
        else answer.log10[starts_[sentence] + tokens - 1] = static_cast<float>(end[place] + log10);
      }
      state.advance();
    }
  }

  double probability(const Batch<Real>& state, std::int64_t row, std::int64_t token) const {
    const auto words = static_cast<std::int64_t>(bundle_.vocabulary.size());
    const double found = static_cast<double>(state.log_probs[static_cast<std::size_t>(row * words + token)]);
    if (!std::isfinite(found)) {
      throw UserError(bundle_.folder.string() + ": the network gives a probability that is no number");
    }
    return found;
  }

  const Bundle& bundle_;
  std::unique_ptr<Backend<Real>> backend_;
  int threads_;
  std::unordered_map<std::string, std::int64_t> ids_;
  std::vector<std::int64_t> tokens_;
  std::vector<std::size_t> starts_, order_;
};

// Reads so many bytes; false at the end of standard input.
bool get(void* to, std::size_t bytes) {
  const std::size_t got = std::fread(to, 1, bytes, stdin);
  if (got > 0 && got < bytes) throw UserError("standard input: a request is cut short");
  return got == bytes;
}

void put(const void* from, std::size_t bytes) {
  if (std::fwrite(from, 1, bytes, stdout) != bytes) throw UserError("standard output: cannot be written");
}

// What was put reaches its reader.
void flush() {
  if (std::fflush(stdout) != 0) throw UserError("standard output: cannot be written");
}

template <class Real>
void serve(const Bundle& bundle, int threads) {
  Scorer<Real> scorer(bundle, threads);
  put("\n", 1), flush();
  for (std::uint32_t head[2]; get(head, sizeof head);) {
    std::string lines(head[1], '\0');
    if (!get(lines.data(), lines.size())) throw UserError("standard input: a request is cut short");
    if (std::count(lines.begin(), lines.end(), '\n') != head[0] || (head[1] && lines.back() != '\n')) {
      throw UserError("standard input: expected as many lines as sentences");
    }
    const Answer answer = scorer.score(lines);
    put(answer.log10.data(), answer.log10.size() * sizeof(float));
    put(answer.known.data(), answer.known.size()), flush();
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  int threads = 1;
  CLI::App app{"What a recurrent language model gives the tokens of sentences, for compgen-ngram."};
  app.add_option("bundle", folder, "A folder that `cgen export` wrote.")->required();
  add_whole(app, "--threads", threads, "Threads.", 1, MOST_WORKERS);
  try {
    if (const auto code = parse(app, argc, argv)) return *code;
    const Bundle bundle(folder);
    require_language_model(bundle);
    check_own_step(bundle);
    if (bundle.dtype == "float64") serve<double>(bundle, threads);
    else serve<float>(bundle, threads);
    return 0;
  } catch (const std::bad_alloc&) {
    tell("not enough memory; try fewer --threads");
  } catch (const std::exception& error) {
    tell(error.what());
  }
  return 2;
}
