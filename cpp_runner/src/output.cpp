#include "output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "errors.h"
#include "numbers.h"
#include "text.h"

namespace compgen {
namespace {

template <class Number>
void append(std::string& text, Number number) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// Rounded to four decimals, without zeros at the end but the first.
void append_rounded(std::string& text, double number) {
  if (std::abs(number) >= 1e15) {  // which has none, and an exponent in Python
    text += shown(number);
    return;
  }
  char digits[32];
  auto* end = std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed, 4).ptr;
  while (end[-1] == '0' && end[-2] != '.') --end;
  text.append(digits, end);
}

template <class Numbers>
void append_list(std::string& text, const Numbers& numbers) {
  text += '[';
  for (const auto number : numbers) append(text, number), text += ',';
  if (numbers.empty()) text += ',';
  text.back() = ']';
}

namespace fs = std::filesystem;

// What every draw has in common, its log-probability to the last digit.
void append_written(std::string& text, const Tokens& tokens, bool finished, double log_prob) {
  text += R"("tokens":)", append_list(text, tokens);
  text += finished ? R"(,"finished":true,"log_prob":)" : R"(,"finished":false,"log_prob":)";
  append(text, log_prob), text += '}';
}

}  // namespace

bool is_packed(const std::string& out) { return fs::path(out).extension() == ".gz"; }

bool writes_tsv(const std::string& out) {
  if (out == "-") return false;
  const fs::path path = is_packed(out) ? fs::path(out).stem() : fs::path(out);
  const auto suffix = path.extension();
  if (suffix != ".tsv" && suffix != ".jsonl") {
    throw UserError(out + ": samples are written as .jsonl or .tsv (perhaps .gz), found suffix '" +
                    fs::path(out).extension().string() + "'");
  }
  return suffix == ".tsv";
}

fs::path partial_path(const fs::path& resolved) { return fs::path(resolved).concat(".partial"); }

std::string as_json(const Draw& draw) {
  std::string text = R"({"index":)";
  text.reserve(8 * (draw.tokens.size() + draw.prototypes.size()) + 128);
  append(text, draw.index);
  text += R"(,"prototypes":)", append_list(text, draw.prototypes), text += ',';
  append_written(text, draw.tokens, draw.finished, draw.log_prob);
  return text;
}

std::string as_json(std::size_t source, const Answer& answer) {
  std::string text = R"({"index":)";
  append(text, source), text += ',';
  append_written(text, answer.target, answer.finished, answer.log_prob);
  return text;
}

std::string as_json(std::size_t source, const Tokens& answer) {
  std::string text = R"({"index":)";
  append(text, source);
  text += R"(,"tokens":)", append_list(text, answer);
  return text += '}';
}

Spelling::Spelling(const std::vector<std::string>& vocabulary) : tokens_(vocabulary) {
  for (const auto& token : vocabulary) {
    std::string text = nlohmann::json(token).dump() + ',';
    const std::size_t size = text.size();
    text.resize(std::max(size, SHORT));
    quoted_.push_back({std::move(text), size});
    const auto parts = split(token);
    fits_tsv_.push_back(parts.size() == 1 && parts[0] == token);
  }
}

std::string Spelling::as_json(const Sample& sample) const {
  std::string text = pair(sample.source, sample.target);
  text += R"(,"index":)", append(text, sample.index);
  text += R"(,"log_prob":)", append_rounded(text, sample.log_prob);
  text += R"(,"prototypes":)", append_list(text, sample.prototypes);
  if (sample.votes) {
    text += R"(,"votes":[)", append(text, sample.votes->first);
    text += ',', append(text, sample.votes->second), text += ']';
  }
  return text += '}';
}

std::string Spelling::as_json(const Tokens& source, const Answer& answer, std::size_t rank) const {
  std::string text = pair(source, answer.target);
  text += R"(,"rank":)", append(text, rank);
  text += R"(,"log_prob":)", append_rounded(text, answer.log_prob);
  return text += '}';
}

std::string Spelling::as_tsv(const Tokens& source, const Tokens& target) const {
  std::string text;
  for (const auto* side : {&source, &target}) {
    if (side == &target) text += '\t';
    for (auto token = side->begin(); token != side->end(); ++token) {
      const auto id = static_cast<std::size_t>(*token);
      if (!fits_tsv_[id]) {
        throw UserError("tsv cannot hold the token '" + tokens_[id] +
                        "', which is empty or has spaces in it: write .jsonl");
      }
      if (token != side->begin()) text += ' ';
      text += tokens_[id];
    }
  }
  return text;
}

std::string Spelling::pair(const Tokens& source, const Tokens& target) const {
  constexpr std::string_view FIRST = R"({"source":[)", SECOND = R"(,"target":[)";
  std::size_t room = FIRST.size() + SECOND.size() + SHORT;
  for (const auto* side : {&source, &target}) {
    for (const auto token : *side) room += quoted_[static_cast<std::size_t>(token)].size;
  }
  std::string text(room, ' ');
  char* const begin = text.data();
  char* end = list(source, std::copy(FIRST.begin(), FIRST.end(), begin));
  end = list(target, std::copy(SECOND.begin(), SECOND.end(), end));
  text.resize(static_cast<std::size_t>(end - begin));
  return text;
}

// Writes tokens, behind an opening bracket, and the closing one; returns the end. There must be room for SHORT bytes
// more: most tokens are copied at a fixed length, which needs no call, and what is too much is written over.
char* Spelling::list(const Tokens& tokens, char* out) const {
  for (const auto token : tokens) {
    const Quoted& one = quoted_[static_cast<std::size_t>(token)];
    if (one.size <= SHORT) std::memcpy(out, one.text.data(), SHORT);
    else std::memcpy(out, one.text.data(), one.size);
    out += one.size;
  }
  if (tokens.empty()) ++out;
  out[-1] = ']';
  return out;
}

std::pair<std::vector<std::string>, std::vector<std::string>> words_of(std::string_view line, bool tsv) {
  using Words = std::vector<std::string>;
  if (!tsv) {
    const auto fields = nlohmann::json::parse(line);
    return {fields.at("source").get<Words>(), fields.at("target").get<Words>()};
  }
  const auto words = [](std::string_view side) {
    Words found;
    for (const auto word : split(side)) found.emplace_back(word);
    return found;
  };
  const auto tab = line.find('\t');
  if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos) throw UserError("no sample");
  return {words(line.substr(0, tab)), words(line.substr(tab + 1))};
}

Output::Output(const std::string& out) : gzip_(is_packed(out) ? std::make_unique<Gzip>(out) : nullptr), file_(out) {}

void Output::line(const std::string& text) {
  if (gzip_) return file_.write(gzip_->packed(text + '\n'));
  file_.write(text);
  file_.write("\n");
}

void Output::finish() {
  if (gzip_) file_.write(gzip_->end());
  file_.finish();
}

Claim::Claim(const std::string& out) {
  if (is_stream(out)) return;
  const fs::path path = partial_path(resolved(out));
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw UserError(out + ": cannot be written: " + std::strerror(errno));
  const bool locked = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno == EWOULDBLOCK) {
    close(descriptor_);
    throw UserError(path.string() + ": another run is writing it");
  }
  struct stat ours = {}, theirs = {};
  fstat(descriptor_, &ours);
  if (stat(path.c_str(), &theirs) != 0 || ours.st_ino != theirs.st_ino) {
    close(descriptor_);
    throw UserError(path.string() + ": another run has just ended and taken it: try again");
  }
  path_ = path;
  stays_ = ours.st_size > 0;  // what an interrupted run has left is not ours to remove
}

Claim::~Claim() {
  if (descriptor_ < 0) return;
  std::error_code ignored;
  if (!stays_) fs::remove(path_, ignored);  // while the lock is held
  close(descriptor_);
}

}  // namespace compgen
