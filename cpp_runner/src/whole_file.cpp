#include "whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iomanip>
#include <random>
#include <sstream>

#include "errors.h"

namespace compgen {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

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

bool names_stream(const fs::path& goal) {
  std::error_code ignored;
  const auto found = fs::status(goal, ignored);
  return fs::exists(found) && !fs::is_regular_file(found) && !fs::is_directory(found);
}

// A folder that is a file is what is wrong with a path, and not what the system says.
[[noreturn]] void cannot_be_written(const std::string& path, std::string why) {
  std::error_code ignored;
  for (fs::path folder = fs::path(path).parent_path(); !folder.empty() && folder != "/"; folder = folder.parent_path()) {
    if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored)) {
      why = folder.string() + " is a file, expected a folder";
    }
  }
  throw UserError(path + ": cannot be written: " + why);
}

}  // namespace

fs::path resolved(const std::string& path) {
  std::error_code ignored;
  fs::path goal = path;
  for (int links = 0; links < 40 && fs::is_symlink(goal, ignored); ++links) {
    goal = goal.parent_path() / fs::read_symlink(goal, ignored);
  }
  if (goal.has_parent_path()) fs::create_directories(goal.parent_path(), ignored);
  return goal;
}

bool is_stream(const std::string& path) { return path == "-" || names_stream(resolved(path)); }

void take_place(const fs::path& made, const fs::path& place) {
  std::error_code error;
  const auto found = fs::status(place, error);
  if (fs::is_regular_file(found)) fs::permissions(made, found.permissions(), error);
  else error.clear();  // there is nothing yet
  if (!error) fs::rename(made, place, error);
  if (error) cannot_be_written(place.string(), error.message());
  const int folder = open(folder_of(place).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);  // so that the new name is on disk, too, where the file system can do that
  close(folder);
}

void check_writable(const std::string& path) {
  if (is_stream(path)) return;
  const fs::path tried = beside(resolved(path));
  std::FILE* const stream = create(tried);
  if (!stream) cannot_be_written(path, std::strerror(errno));
  std::fclose(stream);
  std::error_code ignored;
  fs::remove(tried, ignored);
}

WholeFile::WholeFile(const std::string& path) : path_(path) {
  if (path == "-") return;
  goal_ = resolved(path);
  std::error_code ignored;
  if (names_stream(goal_) || fs::is_directory(goal_, ignored)) {
    stream_ = std::fopen(goal_.c_str(), "wb");  // fails for a folder
  } else {
    temporary_ = beside(goal_);
    stream_ = create(temporary_);
  }
  if (!stream_) fail();
}

WholeFile::~WholeFile() {
  if (stream_ && stream_ != stdout) std::fclose(stream_);
  std::error_code ignored;
  if (is_file()) fs::remove(temporary_, ignored);
}

void WholeFile::write(const std::string& bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stream_) != bytes.size()) fail();
}

void WholeFile::finish() {
  if (std::fflush(stream_) != 0) fail();
  if (stream_ == stdout) return;
  const bool on_disk = !is_file() || fsync(fileno(stream_)) == 0;
  const bool closed = std::fclose(stream_) == 0;
  stream_ = nullptr;
  if (!on_disk || !closed) fail();
  if (is_file()) take_place(temporary_, goal_);
}

void WholeFile::fail() const {
  cannot_be_written(path_ == "-" ? "standard output" : path_, std::strerror(errno));
}

}  // namespace compgen
