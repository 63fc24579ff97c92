#include "whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iomanip>
#include <random>
#include <sstream>
#include <utility>

#include "errors.h"
#include "interrupts.h"

namespace compgen {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t PIECE = 1 << 12;  // bytes that are written together: a reader waits for no more

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

// A new file, never one that is there, nor one that a link names; negative if it cannot be.
int create(const fs::path& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

// What is there, to be written through; negative if it cannot be. A pipe waits for its reader.
int open_stream(const fs::path& path) {
  while (true) {
    const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EINTR) return descriptor;
    if (interrupted()) throw Interrupted();
  }
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
  std::error_code error;
  if (goal.has_parent_path()) fs::create_directories(goal.parent_path(), error);
  if (error) cannot_be_written(path, error.message());
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
  const int descriptor = create(tried);
  if (descriptor < 0) cannot_be_written(path, std::strerror(errno));
  close(descriptor);
  std::error_code ignored;
  fs::remove(tried, ignored);
}

void check_apart(const std::string& out, const std::string& read) {
  if (out == "-" || read == "-") return;
  std::error_code ignored;
  const fs::path ours = fs::weakly_canonical(out, ignored);  // also of `folder/..` where the folder has yet to be made
  if (!fs::is_regular_file(ours, ignored) || !fs::equivalent(ours, read, ignored)) return;
  throw UserError(out + ": it is read, too: choose another name for what is written");
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool on_disk(int descriptor) {
  while (fsync(descriptor) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

WholeFile::WholeFile(const std::string& path) : path_(path), descriptor_(STDOUT_FILENO) {
  if (path == "-") {
    terminal_ = isatty(descriptor_) != 0;
    return;
  }
  goal_ = resolved(path);
  std::error_code ignored;
  if (names_stream(goal_) || fs::is_directory(goal_, ignored)) {
    descriptor_ = open_stream(goal_);  // fails for a folder
  } else {
    temporary_ = beside(goal_);
    descriptor_ = create(temporary_);
  }
  if (descriptor_ < 0) fail();
  terminal_ = isatty(descriptor_) != 0;
}

WholeFile::~WholeFile() {
  if (!is_file() && descriptor_ >= 0) write_all(descriptor_, pending_);  // what a reader may have of work that failed
  if (path_ != "-" && descriptor_ >= 0) close(descriptor_);
  std::error_code ignored;
  if (is_file()) fs::remove(temporary_, ignored);
}

void WholeFile::write(std::string_view bytes) {
  pending_ += bytes;
  if (pending_.size() >= PIECE || (terminal_ && !bytes.empty() && bytes.back() == '\n')) flush();
}

void WholeFile::flush() {
  const std::string bytes = std::move(pending_);
  pending_.clear();
  if (!write_all(descriptor_, bytes)) fail();
}

void WholeFile::finish() {
  flush();
  if (path_ == "-") return;
  const bool safe = !is_file() || on_disk(descriptor_);
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (!safe) fail();
  if (close(descriptor) != 0 && errno != EINTR) fail();  // Linux closes it even then
  if (is_file()) take_place(temporary_, goal_);
}

void WholeFile::fail() const {
  cannot_be_written(path_ == "-" ? "standard output" : path_, std::strerror(errno));
}

}  // namespace compgen
