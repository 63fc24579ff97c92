#include "output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "errors.h"
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
  char digits[512];  // the largest has 309 before the point
  auto* end = std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed, 4).ptr;
  while (end[-1] == '0' && end[-2] != '.') --end;
  text.append(digits, end);
}

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

bool is_stream(const fs::path& path) {
  std::error_code ignored;
  const auto found = fs::status(path, ignored);
  return fs::exists(found) && !fs::is_regular_file(found) && !fs::is_directory(found);
}

// A name in the same folder that nobody can guess.
fs::path beside(const fs::path& path) {
  std::random_device system;
  std::ostringstream name;
  name << '.' << std::hex << std::setfill('0');
  for (int part = 0; part < 4; ++part) name << std::setw(8) << system();
  name << '.' << path.filename().string();
  return path.parent_path() / name.str();
}

// A new file, never one that is there, nor one that a link names; null if it cannot be.
std::FILE* create(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  return descriptor < 0 ? nullptr : fdopen(descriptor, "wb");
}

// What every draw has in common, its log-probability to the last digit.
std::string written(const Tokens& tokens, bool finished, double log_prob) {
  return R"("tokens":)" + nlohmann::json(tokens).dump() + R"(,"finished":)" + (finished ? "true" : "false") +
         R"(,"log_prob":)" + nlohmann::json(log_prob).dump() + "}";
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

fs::path resolved(const std::string& out) {
  std::error_code ignored;
  fs::path goal = out;
  for (int links = 0; links < 40 && fs::is_symlink(goal, ignored); ++links) {
    goal = goal.parent_path() / fs::read_symlink(goal, ignored);
  }
  if (goal.has_parent_path()) fs::create_directories(goal.parent_path(), ignored);
  return goal;
}

fs::path partial_path(const fs::path& resolved) { return fs::path(resolved).concat(".partial"); }

bool is_stream(const std::string& out) { return out == "-" || is_stream(resolved(out)); }

void take_place(const fs::path& made, const fs::path& place) {
  std::error_code error;
  const auto found = fs::status(place, error);
  if (fs::is_regular_file(found)) fs::permissions(made, found.permissions(), error);
  else error.clear();  // there is nothing yet
  if (!error) fs::rename(made, place, error);
  if (error) throw UserError(place.string() + ": cannot be written: " + error.message());
  const int folder = open(folder_of(place).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);  // so that the new name is on disk, too, where the file system can do that
  close(folder);
}

std::string as_json(const Draw& draw) {
  return R"({"index":)" + std::to_string(draw.index) + R"(,"prototypes":)" + nlohmann::json(draw.prototypes).dump() +
         "," + written(draw.tokens, draw.finished, draw.log_prob);
}

std::string as_json(std::size_t source, const Answer& answer) {
  return R"({"index":)" + std::to_string(source) + "," + written(answer.target, answer.finished, answer.log_prob);
}

Spelling::Spelling(const std::vector<std::string>& vocabulary) : tokens_(vocabulary) {
  for (const auto& token : vocabulary) {
    quoted_.push_back(nlohmann::json(token).dump());
    const auto parts = split(token);
    fits_tsv_.push_back(parts.size() == 1 && parts[0] == token);
  }
}

std::string Spelling::as_json(const Sample& sample) const {
  std::string text = pair(sample.source, sample.target);
  text += R"(,"index":)", append(text, sample.index);
  text += R"(,"log_prob":)", append_rounded(text, sample.log_prob);
  text += R"(,"prototypes":[)";
  for (const auto row : sample.prototypes) append(text, row), text += ',';
  if (!sample.prototypes.empty()) text.pop_back();
  text += ']';
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
                        "', which has blanks or nothing in it: write .jsonl");
      }
      if (token != side->begin()) text += ' ';
      text += tokens_[id];
    }
  }
  return text;
}

std::string Spelling::pair(const Tokens& source, const Tokens& target) const {
  std::string text;
  text.reserve(16 * (8 + source.size() + target.size()));
  const auto list = [&](const Tokens& tokens) {
    text += '[';
    for (const auto token : tokens) text += quoted_[static_cast<std::size_t>(token)], text += ',';
    if (tokens.empty()) text += ']';
    else text.back() = ']';
  };
  text += R"({"source":)", list(source);
  text += R"(,"target":)", list(target);
  return text;
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

Output::Output(const std::string& out) : gzip_(is_packed(out) ? std::make_unique<Gzip>(out) : nullptr) {
  if (out == "-") return;
  goal_ = resolved(out);
  if (is_stream(goal_)) {
    stream_ = std::fopen(goal_.c_str(), "wb");
  } else {
    temporary_ = beside(goal_);
    stream_ = create(temporary_);
  }
  if (!stream_) fail();
}

Output::~Output() {
  if (stream_ && stream_ != stdout) std::fclose(stream_);
  std::error_code ignored;
  if (is_file()) std::filesystem::remove(temporary_, ignored);
}

void Output::write(const std::string& bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stream_) != bytes.size()) fail();
}

void Output::line(const std::string& text) {
  if (gzip_) return write(gzip_->packed(text + '\n'));
  write(text);
  if (std::fputc('\n', stream_) == EOF) fail();
}

void Output::finish() {
  if (gzip_) write(gzip_->end());
  if (std::fflush(stream_) != 0) fail();
  if (stream_ == stdout) return;
  const bool on_disk = !is_file() || fsync(fileno(stream_)) == 0;
  const bool closed = std::fclose(stream_) == 0;
  stream_ = nullptr;
  if (!on_disk || !closed) fail();
  if (is_file()) take_place(temporary_, goal_);
}

void Output::fail() const {
  const std::string where = goal_.empty() ? "standard output" : goal_.string();
  throw UserError(where + ": cannot be written: " + std::strerror(errno));
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

void check_writable(const std::string& out) {
  if (is_stream(out)) return;
  const fs::path tried = beside(resolved(out));
  std::FILE* const stream = create(tried);
  if (!stream) throw UserError(out + ": cannot be written: " + std::strerror(errno));
  std::fclose(stream);
  std::error_code ignored;
  fs::remove(tried, ignored);
}

}  // namespace compgen
