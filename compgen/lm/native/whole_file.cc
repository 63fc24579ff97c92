#include "whole_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "errors.h"

namespace compgen {

namespace fs = std::filesystem;

WholeFile::WholeFile(const std::string& path) : path_(path), goal_(path) {
  std::error_code none;
  if (fs::is_symlink(goal_, none)) goal_ = fs::weakly_canonical(goal_, none);
  if (goal_.has_parent_path()) fs::create_directories(goal_.parent_path(), none);
  if (fs::exists(goal_, none) && !fs::is_regular_file(goal_, none)) {
    stream_ = std::fopen(goal_.c_str(), "wb");
  } else {
    std::string name = (goal_.parent_path() / ("." + goal_.filename().string() + ".XXXXXX")).string();
    const int descriptor = mkstemp(name.data());  // which no other user can read
    if (descriptor >= 0) {
      struct stat status {};
      const bool old = stat(goal_.c_str(), &status) == 0;
      const mode_t mask = umask(0);
      umask(mask);
      fchmod(descriptor, old ? status.st_mode : 0666 & ~mask);
      temporary_ = name;
      stream_ = fdopen(descriptor, "wb");
    }
  }
  if (!stream_) fail();
}

WholeFile::~WholeFile() {
  if (stream_) std::fclose(stream_);
  std::error_code none;
  if (!temporary_.empty()) fs::remove(temporary_, none);
}

void WholeFile::write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size()) fail();
}

void WholeFile::finish() {
  if (std::fflush(stream_)) fail();
  if (!temporary_.empty() && fsync(fileno(stream_))) fail();  // on disk before it has its name
  std::FILE* const stream = stream_;
  stream_ = nullptr;
  if (std::fclose(stream)) fail();
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), goal_.c_str())) fail();
  temporary_.clear();
}

void WholeFile::fail() const {
  std::string why = std::strerror(errno);
  std::error_code none;
  for (fs::path folder = path_.parent_path(); !folder.empty() && folder != "/"; folder = folder.parent_path()) {
    if (fs::exists(folder, none) && !fs::is_directory(folder, none)) {
      why = folder.string() + " is a file, expected a folder";
    }
  }
  throw UserError(path_.string() + ": cannot be written: " + why);
}

}  // namespace compgen
