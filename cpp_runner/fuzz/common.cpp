#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "errors.h"
#include "readers.h"

namespace compgen::fuzz {

namespace fs = std::filesystem;

std::string verdict(const Reader& reader, const std::string& input) {
  try {
    reader.read(input);
    return "taken";
  } catch (const UserError& error) {
    return std::string("refused: ") + error.what();
  }
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

const std::string& folder() {
  struct Folder {
    std::string path;
    Folder() {
      std::error_code none;
      const std::string place = fs::is_directory("/dev/shm", none) ? "/dev/shm" : fs::temp_directory_path().string();
      std::string name = place + "/compgen-fuzz-XXXXXX";
      require(mkdtemp(name.data()) != nullptr, "a folder can be made");
      path = name;
    }
    ~Folder() {
      std::error_code none;
      fs::remove_all(path, none);
    }
  };
  static const Folder found;
  return found.path;
}

void write_file(const std::string& path, const std::string& content) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  require(file && std::fwrite(content.data(), 1, content.size(), file) == content.size(), "a file can be written");
  std::fclose(file);
}

}  // namespace compgen::fuzz
