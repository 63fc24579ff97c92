// Writing samples to a file so that a run that is killed can be resumed, by this program or by compgen's Python; see
// compgen/sampling/partial.py, whose files these are.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "filters.h"
#include "output.h"

namespace compgen {

using Json = nlohmann::ordered_json;  // Python's objects keep their order

// zlib's adler32, of bytes behind those that have the sum `before`.
std::uint32_t adler32(std::string_view bytes, std::uint32_t before);

// OUT.partial, open for writing, and OUT.partial.json, the journal. The caller keeps `counts` up to date. What an error
// leaves behind stays, to be resumed, if it was ever saved.
class PartialFile {
 public:
  // Begins anew, or with `resume` goes on from what is there, if anything is. `options` are all on which samples depend,
  // `start` among them. Throws UserError: the file cannot be written, another run writes it; the journal cannot be
  // read, is of a run with other options, or counts more bytes than there are, or other ones.
  PartialFile(const std::string& out, Json options, std::string step, bool resume);
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  // Throws UserError when nothing more can be written, on a full disk for instance.
  void line(std::string_view text);
  // Makes this a point to resume from. `counts` must count the draws up to the last sample written, or up to a later one
  // that was not kept.
  void save();
  // The same every two seconds.
  void save_now_and_then();
  // Calls `take` with each line that is written already, without its end, and its number. The view is of the moment.
  void each_line(const std::function<void(std::string_view, std::int64_t)>& take) const;
  // The file becomes OUT, and the journal goes.
  void finish();
  // Nobody can go on from this: the journal goes, and the file with this object.
  void forget();

  const std::filesystem::path& path() const { return claim_.path(); }
  // Of the whole run, the parts before interruptions included.
  double seconds() const;

  Counts counts;

 private:
  using Clock = std::chrono::steady_clock;

  void begin();
  void restore();
  void cut(std::int64_t size);
  void write();
  [[noreturn]] void fail() const;

  std::filesystem::path goal_;
  Json options_;
  std::string step_;
  bool resumes_;  // found before the claim makes the file: a run killed as it ended can leave a journal of nothing
  Claim claim_;
  std::filesystem::path journal_;
  std::string pending_;  // lines that are still to be written
  std::int64_t bytes_ = 0;
  std::uint32_t sum_ = 1;  // Adler-32 of the bytes
  Clock::time_point began_ = Clock::now(), saved_ = Clock::now(), shown_ = Clock::now();
};

// The step that an interrupted run decodes by: what its journal names, the graph if that names none, as Python's; nothing
// if there is no journal.
std::optional<std::string> step_of_interrupted(const std::string& out);

// Deletes the journal of a run that was killed when OUT was there already.
void forget_journal(const std::string& out);

}  // namespace compgen
