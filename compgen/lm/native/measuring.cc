#include "measuring.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>

#include "errors.h"
#include "mixing.h"
#include "threads.h"

namespace compgen {
namespace {

// Threads that share a text: each reads some lines, scores them, and waits for its turn to hand them on.
class Line {
 public:
  Line(const std::string& path, const Scoring& scoring, const std::function<void(Block&)>& finish,
       const std::function<void(Block&)>& take)
      : path_(path), text_(path, scoring.packed), scoring_(scoring), finish_(finish), take_(take) {}

  void run() {
    Threads others([] {});
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;  // those that are there end if others cannot be had
      for (std::size_t i = 1; i < scoring_.threads; ++i) others.start([this] { work(); });
      stopped_ = false;
    }
    work();
    others.join();
    for (const auto& error : {error_, broken_})
      if (error) std::rethrow_exception(error);
  }

 private:
  void work() {
    Block block;  // keeps its memory from one part of the text to the next
    for (std::uint64_t number = 0, line = 0; read(block, number, line);) {
      std::exception_ptr error;
      try {
        fill(block, line);
        finish_(block);
      } catch (...) {
        error = std::current_exception();
      }
      hand_on(block, number, error);
    }
  }

  bool read(Block& block, std::uint64_t& number, std::uint64_t& line) {
    const std::lock_guard lock(mutex_);
    try {
      if (stopped_ || !text_.next(block.lines, line)) return false;
    } catch (...) {  // what stands before it in the text may be bad, too, and is named first
      broken_ = std::current_exception();
      stopped_ = true;
      return false;
    }
    number = read_++;
    return true;
  }

  void fill(Block& block, std::uint64_t line) const {
    try {
      split_sentences(block.lines, line, scoring_.blank, block.sentences);
    } catch (const UserError& error) {
      throw UserError(path_ + ", " + error.what() + "; expected sentences of plain words");
    }
    block.models.resize(scoring_.models.size());
    for (std::size_t m = 0; m < block.models.size(); ++m) scoring_.models[m]->score(block.sentences, block.models[m]);
    if (scoring_.mixture) scoring_.mixture->losses(block.models, block.losses);
  }

  void hand_on(Block& block, std::uint64_t number, std::exception_ptr error) {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return taken_ == number; });
    if (!error_) {
      try {
        if (error) std::rethrow_exception(error);
        take_(block);
      } catch (...) {
        error_ = std::current_exception();
        stopped_ = true;
      }
    }
    ++taken_;
    turn_.notify_all();
  }

  std::string path_;
  Text text_;
  const Scoring& scoring_;
  const std::function<void(Block&)>&finish_, &take_;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::uint64_t read_ = 0, taken_ = 0;  // parts of the text
  bool stopped_ = false;
  std::exception_ptr error_, broken_;  // what is wrong with a part of the text; why it cannot be read on
};

void append(std::string& text, const char* form, double number) {
  char digits[400];  // the largest number has 309 before its point
  text.append(digits, static_cast<std::size_t>(std::snprintf(digits, sizeof digits, form, number)));
}

}  // namespace

void score(const std::string& text, const Scoring& scoring, const std::function<void(Block&)>& finish,
           const std::function<void(Block&)>& take) {
  Line(text, scoring, finish, take).run();
}

void Perplexity::add(const Block& block) {
  sentences += block.sentences.lengths.size();
  tokens += block.losses.size();
  double sum = 0, sum_known = 0;
  for (std::size_t t = 0; t < block.losses.size(); ++t) {
    sum += block.losses[t];
    if (block.models[0].matched[t]) sum_known += block.losses[t];
    else ++unknown;
  }
  loss += sum;
  loss_known += sum_known;
}

double Perplexity::including() const { return std::exp(loss / static_cast<double>(tokens)); }

double Perplexity::excluding() const {
  const std::uint64_t known = std::max<std::uint64_t>(1, tokens - unknown);
  return std::exp(loss_known / static_cast<double>(known));
}

std::string sentence_rows(const Block& block, bool rescored) {
  std::string rows;
  std::size_t at = 0;
  for (const std::uint32_t length : block.sentences.lengths) {
    double loss = 0;
    std::uint32_t unknown = 0;
    for (const std::size_t end = at + length; at < end; ++at) {
      loss += block.losses[at];
      unknown += block.models[0].matched[at] == 0;
    }
    const std::string counts = std::to_string(length) + "\t" + std::to_string(unknown);
    if (rescored) {
      append(rows, "%.6f\t", -loss), rows += counts + "\n";
    } else {
      rows += counts, append(rows, "\t%.6f\n", loss);
    }
  }
  return rows;
}

std::string token_rows(const Block& block, std::uint64_t first) {
  const Scores& scores = block.models[0];
  std::string rows;
  std::size_t at = 0;
  for (const std::uint32_t length : block.sentences.lengths) {
    const std::string sentence = std::to_string(first++) + "\t";
    for (std::uint32_t i = 0; i < length; ++i, ++at) {
      rows += sentence + std::to_string(i);
      append(rows, "\t%.6f\t", block.losses[at] / -LN10);
      rows += std::to_string(scores.matched[at]) + "\t" + std::to_string(scores.known[at]) + "\n";
    }
  }
  return rows;
}

}  // namespace compgen
