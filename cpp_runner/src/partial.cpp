#include "partial.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

#include "errors.h"
#include "numbers.h"
#include "record.h"
#include "strict_json.h"
#include "text.h"

namespace compgen {
namespace {

namespace fs = std::filesystem;

constexpr auto SAVE_EVERY = std::chrono::seconds(2);
constexpr auto SHOW_EVERY = std::chrono::milliseconds(200);  // what is done can be seen in OUT.partial
constexpr std::size_t PIECE = 1 << 18;    // bytes that are written together
constexpr std::size_t LARGEST_PART = 40;  // characters of an option in a message

fs::path journal_of(const fs::path& partial) { return fs::path(partial).concat(".json"); }

// Also false if the name is too long to be there: writing the file will say so.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string shown(const Json& value) { return beginning(represented_value(value), LARGEST_PART); }

// What a journal says, if it is one of sampling.
struct State {
  Json options;
  std::int64_t bytes = 0, check = 0;
  Counts counts;
  double seconds = 0;
  std::string step;
};

// The sum of the bytes of OUT.partial and of what the journal says of them, so that it shows if either was altered.
std::int64_t check_of(std::uint32_t sum, std::int64_t bytes, const Counts& counts, const std::string& step) {
  std::string said = step;
  for (const auto count : {bytes, counts.drawn, counts.kept, counts.last}) said += "\n" + std::to_string(count);
  for (const auto& [reason, count] : counts.rejected) said += "\n" + reason + "\n" + std::to_string(count);
  return adler32(said, sum);
}

double seconds_of(const Json& number) {
  constexpr double MOST = 1e9;  // which a clock can count
  if (!number.is_number() || number < 0 || number > MOST) throw UserError("no time");
  return number.get<double>();
}

State read(const fs::path& journal) {
  try {
    const Json state = strict_ordered_json(content_of(journal));
    State found;
    found.options = state.at("options"), found.seconds = seconds_of(state.at("seconds"));
    found.bytes = whole(state.at("bytes")), found.check = whole(state.at("check"));
    found.step = state.value("step", Json("")).get<std::string>();
    const Json &counts = state.at("counts"), &rejected = counts.at("rejected");
    found.counts.drawn = whole(counts.at("drawn")), found.counts.kept = whole(counts.at("kept"));
    found.counts.last = whole(counts.at("last"));
    if (!found.options.is_object() || !rejected.is_object() || counts.size() != 4) throw UserError("other fields");
    for (const auto& [reason, count] : rejected.items()) found.counts.rejected.emplace_back(reason, whole(count));
    return found;
  } catch (const std::exception&) {  // of JSON or ours: whatever is wrong, there is one thing to do
    throw UserError(journal.string() + ": not a journal of sampling: leave out --resume to start anew");
  }
}

// The sum of so many bytes of a file, or of fewer if it has fewer.
std::uint32_t sum_of(const fs::path& path, std::int64_t bytes) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(1 << 16);
  std::uint32_t sum = 1;
  while (bytes > 0 && file) {
    file.read(piece.data(), std::min<std::int64_t>(bytes, static_cast<std::int64_t>(piece.size())));
    sum = adler32({piece.data(), static_cast<std::size_t>(file.gcount())}, sum);
    bytes -= file.gcount();
  }
  return sum;
}

}  // namespace

// Byte by byte each of the two sums waits for the one before; so bytes are a table, whose columns are added up side by
// side:
//   low  = before + sum over k of sums[k]
//   high = before + bytes * low before + sum over k of (COLUMNS * earlier[k] + (COLUMNS - k) * sums[k])
std::uint32_t adler32(std::string_view bytes, std::uint32_t before) {
  constexpr std::uint32_t MODULUS = 65521;
  constexpr std::size_t COLUMNS = 32, ROWS = 5552 / COLUMNS;  // so many bytes do not overflow
  std::uint32_t low = before & 0xffff, high = before >> 16;
  std::size_t at = 0;
  while (bytes.size() - at >= COLUMNS) {
    const std::size_t rows = std::min(ROWS, (bytes.size() - at) / COLUMNS);
    std::uint32_t sums[COLUMNS] = {}, earlier[COLUMNS] = {};  // of each column's bytes; of its sums before each row
    for (std::size_t row = 0; row < rows; ++row, at += COLUMNS) {
      for (std::size_t k = 0; k < COLUMNS; ++k) {
        earlier[k] += sums[k];
        sums[k] += static_cast<unsigned char>(bytes[at + k]);
      }
    }
    high += static_cast<std::uint32_t>(rows * COLUMNS) * low;
    for (std::uint32_t k = 0; k < COLUMNS; ++k) {
      low += sums[k];
      high += static_cast<std::uint32_t>(COLUMNS) * earlier[k] + (static_cast<std::uint32_t>(COLUMNS) - k) * sums[k];
    }
    low %= MODULUS, high %= MODULUS;
  }
  for (; at < bytes.size(); ++at) low += static_cast<unsigned char>(bytes[at]), high += low;
  return high % MODULUS << 16 | low % MODULUS;
}

PartialFile::PartialFile(const std::string& out, Json options, std::string step, bool resume)
    : goal_(resolved(out)),
      options_(std::move(options)),
      step_(std::move(step)),
      resumes_(resume && is_there(partial_path(goal_))),
      claim_(out),
      journal_(journal_of(claim_.path())) {
  if (fs::is_directory(goal_)) errno = EISDIR, fail();
  resumes_ = resumes_ && is_there(journal_);
  claim_.keep(resumes_);
  resumes_ ? restore() : begin();
}

void PartialFile::begin() {
  if (is_there(journal_)) {
    std::cerr << path().string()
              << ": the samples of an interrupted run are dropped (--resume would have kept them)\n";
  }
  // First: it must never describe another run's bytes.
  if (std::remove(journal_.c_str()) != 0 && errno != ENOENT) fail();
  cut(0);
}

void PartialFile::restore() {
  State state = read(journal_);
  std::string differing;
  for (const auto& [name, asked] : options_.items()) {
    const Json found = state.options.value(name, Json());
    if (same(found, asked)) continue;
    differing += (differing.empty() ? "" : "; ") + name + " was " + shown(found) + ", is " + shown(asked);
  }
  if (!differing.empty()) {
    throw UserError(journal_.string() + ": the interrupted run had other options: " + differing +
                    "; give the same, or leave out --resume to start anew");
  }
  const auto found = static_cast<std::int64_t>(fs::file_size(path()));
  if (found < state.bytes) {
    throw UserError(path().string() + ": " + with_commas(found) + " bytes, expected " + with_commas(state.bytes) +
                    " or more: cut short or altered: leave out --resume to start anew");
  }
  sum_ = sum_of(path(), state.bytes);
  if (check_of(sum_, state.bytes, state.counts, state.step) != state.check) {
    throw UserError(path().string() + ": not what " + journal_.filename().string() +
                    " says of it: one of them was altered: leave out --resume to start anew");
  }
  cut(state.bytes);
  counts = std::move(state.counts);
  began_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(state.seconds));
}

void PartialFile::cut(std::int64_t size) {
  const int file = claim_.descriptor();
  if (ftruncate(file, size) != 0 || lseek(file, size, SEEK_SET) != size) fail();
  bytes_ = size;
}

void PartialFile::line(std::string_view text) {
  pending_ += text, pending_ += '\n';
  if (pending_.size() >= PIECE) write();
}

void PartialFile::write() {
  if (!write_all(claim_.descriptor(), pending_)) fail();
  bytes_ += static_cast<std::int64_t>(pending_.size());
  sum_ = adler32(pending_, sum_);
  pending_.clear();
}

void PartialFile::save() {
  write();
  if (!on_disk(claim_.descriptor())) fail();  // a crash must not lose bytes that count
  Json state = {{"options", options_},
                {"next", options_.at("start").get<std::int64_t>() + counts.drawn},
                {"bytes", bytes_},
                {"counts", {{"drawn", counts.drawn}, {"kept", counts.kept}, {"rejected", Json::object()}}},
                {"seconds", std::round(seconds() * 100) / 100}};
  for (const auto& [reason, count] : counts.rejected) state["counts"]["rejected"][reason] = count;
  state["counts"]["last"] = counts.last;
  if (!step_.empty()) state["step"] = step_;  // which Python does not ask for
  state["check"] = check_of(sum_, bytes_, counts, step_);
  Output journal(journal_.string());
  journal.line(state.dump(1, ' ', true));
  journal.finish();
  claim_.keep(true);
  saved_ = shown_ = Clock::now();
}

void PartialFile::save_now_and_then() {
  const auto now = Clock::now();
  if (now - saved_ >= SAVE_EVERY) return save();
  if (now - shown_ < SHOW_EVERY) return;
  write();
  shown_ = now;
}

void PartialFile::each_line(const std::function<void(std::string_view, std::int64_t)>& take) const {
  std::ifstream file(path(), std::ios::binary);
  std::int64_t number = 0;
  for (std::string line; std::getline(file, line);) take(line, ++number);
  if (file.bad()) throw UserError(path().string() + ": cannot be read to its end");
}

void PartialFile::finish() {
  save();
  take_place(path(), goal_);  // while the lock is held: no other run may resume from it
  claim_.keep(true);          // what has this name from now on is another run's
  fs::remove(journal_);
}

void PartialFile::forget() {
  claim_.keep(false);
  fs::remove(journal_);
}

double PartialFile::seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

void PartialFile::fail() const {
  throw UserError(goal_.string() + ": cannot be written: " + std::strerror(errno));
}

std::optional<std::string> step_of_interrupted(const std::string& out) {
  const fs::path partial = partial_path(resolved(out));
  if (!is_there(partial) || !is_there(journal_of(partial))) return std::nullopt;
  const Json state = Json::parse(content_of(journal_of(partial)), nullptr, false);
  const bool own = state.is_object() && state.value("step", Json()) == "own";
  return own ? "own" : "graph";
}

void forget_journal(const std::string& out) {
  std::error_code ignored;
  fs::remove(journal_of(partial_path(resolved(out))), ignored);
}

}  // namespace compgen
