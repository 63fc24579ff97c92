#include "output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "errors.h"

namespace compgen {
namespace {

std::string list(const Tokens& tokens, const std::vector<std::string>& vocabulary) {
  std::string text = "[";
  for (const auto token : tokens) {
    if (text.size() > 1) text += ',';
    text += nlohmann::json(vocabulary[static_cast<std::size_t>(token)]).dump();
  }
  return text + "]";
}

std::string words(const Tokens& tokens, const std::vector<std::string>& vocabulary) {
  std::string text;
  for (const auto id : tokens) {
    const std::string& token = vocabulary[static_cast<std::size_t>(id)];
    if (token.empty() || token.find_first_of(" \t\n\v\f\r") != std::string::npos) {
      throw UserError("tsv cannot hold the token '" + token + "', which has blanks or nothing in it: write .jsonl");
    }
    if (!text.empty()) text += ' ';
    text += token;
  }
  return text;
}

// Rounded to four decimals, without zeros at the end but the first.
std::string rounded(double number) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4f", number);
  std::string digits = text;
  while (digits.back() == '0' && digits[digits.size() - 2] != '.') digits.pop_back();
  return digits;
}

// What every draw has in common, its log-probability to the last digit.
std::string written(const Tokens& tokens, bool finished, double log_prob) {
  return R"("tokens":)" + nlohmann::json(tokens).dump() + R"(,"finished":)" + (finished ? "true" : "false") +
         R"(,"log_prob":)" + nlohmann::json(log_prob).dump() + "}";
}

}  // namespace

std::string as_json(const Draw& draw) {
  return R"({"index":)" + std::to_string(draw.index) + R"(,"prototypes":)" + nlohmann::json(draw.prototypes).dump() +
         "," + written(draw.tokens, draw.finished, draw.log_prob);
}

std::string as_json(const Answer& answer) {
  return "{" + written(answer.target, answer.finished, answer.log_prob);
}

std::string as_json(const Tokens& source, const Tokens& target, double log_prob,
                    const std::vector<std::string>& vocabulary) {
  return R"({"source":)" + list(source, vocabulary) + R"(,"target":)" + list(target, vocabulary) + R"(,"log_prob":)" +
         rounded(log_prob) + "}";
}

std::string as_json(const Sample& sample, const std::vector<std::string>& vocabulary) {
  std::string text = R"({"source":)" + list(sample.source, vocabulary) + R"(,"target":)" +
                     list(sample.target, vocabulary) + R"(,"index":)" + std::to_string(sample.index) +
                     R"(,"log_prob":)" + rounded(sample.log_prob) + R"(,"prototypes":)" +
                     nlohmann::json(sample.prototypes).dump();
  if (sample.votes) {
    text += R"(,"votes":[)" + std::to_string(sample.votes->first) + "," + std::to_string(sample.votes->second) + "]";
  }
  return text + "}";
}

std::string as_tsv(const Tokens& source, const Tokens& target, const std::vector<std::string>& vocabulary) {
  return words(source, vocabulary) + "\t" + words(target, vocabulary);
}

Output::Output(const std::string& out) {
  if (out == "-") return;
  namespace fs = std::filesystem;
  std::error_code ignored;
  goal_ = out;
  for (int links = 0; links < 40 && fs::is_symlink(goal_, ignored); ++links) {  // what it names need not be there yet
    goal_ = goal_.parent_path() / fs::read_symlink(goal_, ignored);
  }
  if (goal_.has_parent_path()) fs::create_directories(goal_.parent_path(), ignored);
  const auto found = fs::status(goal_, ignored);
  const bool streams = fs::exists(found) && !fs::is_regular_file(found) && !fs::is_directory(found);
  if (!streams) temporary_ = goal_.parent_path() / ("." + std::to_string(getpid()) + "." + goal_.filename().string());
  stream_ = std::fopen(streams ? goal_.c_str() : temporary_.c_str(), "wb");
  if (!stream_) fail();
}

Output::~Output() {
  if (stream_ && stream_ != stdout) std::fclose(stream_);
  std::error_code ignored;
  if (is_file()) std::filesystem::remove(temporary_, ignored);
}

void Output::line(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size() || std::fputc('\n', stream_) == EOF) fail();
}

void Output::finish() {
  if (std::fflush(stream_) != 0) fail();
  if (stream_ == stdout) return;
  const bool closed = std::fclose(stream_) == 0;
  stream_ = nullptr;
  if (!closed) fail();
  if (!is_file()) return;
  std::error_code error;
  const auto found = std::filesystem::status(goal_, error);
  if (std::filesystem::is_regular_file(found)) std::filesystem::permissions(temporary_, found.permissions(), error);
  else error.clear();  // there is nothing yet
  if (!error) std::filesystem::rename(temporary_, goal_, error);
  if (error) throw UserError(goal_.string() + ": cannot be written: " + error.message());
}

void Output::fail() const {
  const std::string where = goal_.empty() ? "standard output" : goal_.string();
  throw UserError(where + ": cannot be written: " + std::strerror(errno));
}

}  // namespace compgen
