#include "recurrent.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>

#include "errors.h"
#include "strict_json.h"

namespace compgen {
namespace {

namespace fs = std::filesystem;

constexpr const char* PROGRAM = "compgen-score";
constexpr std::size_t SPECIALS = 5;  // symbols before the words, as in compgen/data/vocabulary.py
constexpr const char* NAMED = "COMPGEN_SCORER";  // environment variable: the program

// The program: what the environment variable names, or else one beside this program or on PATH.
std::string program(const std::string& model) {
  std::error_code none;
  if (const char* named = std::getenv(NAMED)) return named;
  const char* folders = std::getenv("PATH");
  const std::string ours = fs::read_symlink("/proc/self/exe", none).parent_path().string();
  std::stringstream places(ours + ":" + (folders ? folders : ""));
  for (std::string folder; std::getline(places, folder, ':');) {
    const fs::path found = fs::path(folder) / PROGRAM;
    if (fs::is_regular_file(found, none) && access(found.c_str(), X_OK) == 0) return found.string();
  }
  throw UserError(model + ": a recurrent model, which " + PROGRAM + " runs: `make runner` builds it; set " + NAMED +
                  " to it or put it on PATH, or use `cgen lm`");
}

// The program, and what connects with it.
class Recurrent final : public Model {
 public:
  Recurrent(const std::string& path, std::size_t threads) : path_(path) {
    const std::string scorer = program(path), count = std::to_string(threads);
    int channel[2], errors[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) || pipe(errors)) {
      throw UserError(path + ": no connection with " + PROGRAM);
    }
    process_ = fork();
    if (process_ == 0) {
      dup2(channel[1], STDIN_FILENO), dup2(channel[1], STDOUT_FILENO), dup2(errors[1], STDERR_FILENO);
      close(errors[0]), close(errors[1]);
      execl(scorer.c_str(), scorer.c_str(), path.c_str(), "--threads", count.c_str(), nullptr);
      dprintf(STDERR_FILENO, "%s: cannot be run\n", scorer.c_str());
      _exit(2);
    }
    channel_ = channel[0], errors_ = errors[0];
    close(channel[1]), close(errors[1]);
    char opened = 0;
    receive(&opened, 1);
  }

  Recurrent(const Recurrent&) = delete;
  Recurrent& operator=(const Recurrent&) = delete;

  ~Recurrent() override {
    close(channel_), close(errors_);
    waitpid(process_, nullptr, 0);
  }

  void score(const Sentences& sentences, Scores& scores) const override {
    std::string lines;
    auto word = sentences.words.begin();
    for (const std::uint32_t length : sentences.lengths) {
      for (std::uint32_t i = 1; i < length; ++i) (lines += *word++) += ' ';
      lines += '\n';
    }
    const std::size_t tokens = sentences.tokens();
    scores.log10.resize(tokens);
    scores.matched.resize(tokens);
    scores.known.assign(tokens, 0);
    const std::uint32_t head[2] = {static_cast<std::uint32_t>(sentences.lengths.size()),
                                   static_cast<std::uint32_t>(lines.size())};
    const std::lock_guard lock(mutex_);  // one request at a time; the program has threads of its own
    send(head, sizeof head);
    send(lines.data(), lines.size());
    receive(scores.log10.data(), tokens * sizeof(float));
    receive(scores.matched.data(), tokens);
  }

 private:
  void send(const void* from, std::size_t bytes) const {
    for (const char* at = static_cast<const char*>(from); bytes;) {
      const ssize_t count = ::send(channel_, at, bytes, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      at += count, bytes -= static_cast<std::size_t>(count);
    }
  }

  void receive(void* to, std::size_t bytes) const {
    for (char* at = static_cast<char*>(to); bytes;) {
      const ssize_t count = read(channel_, at, bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail();
      at += count, bytes -= static_cast<std::size_t>(count);
    }
  }

  // The program has ended: what it said is the error.
  [[noreturn]] void fail() const {
    std::string said;
    char part[512];
    for (ssize_t count; (count = read(errors_, part, sizeof part)) > 0;) {
      said.append(part, static_cast<std::size_t>(count));
    }
    if (said.compare(0, 7, "error: ") == 0) said.erase(0, 7);
    said = said.substr(0, said.find('\n'));
    throw UserError(said.empty() ? path_ + ": " + PROGRAM + " ended without an answer" : said);
  }

  std::string path_;
  pid_t process_ = -1;
  int channel_ = -1, errors_ = -1;
  mutable std::mutex mutex_;
};

}  // namespace

bool is_recurrent(const std::string& path) {
  std::error_code none;
  return fs::path(path).extension() == ".pt" || fs::is_directory(path, none);
}

std::unique_ptr<Model> open_recurrent(const std::string& path, std::size_t threads) {
  std::error_code none;
  if (!fs::is_directory(path, none)) {
    throw UserError(path + ": a checkpoint, which needs torch: `cgen export` makes a bundle of it, or use `cgen lm`");
  }
  return std::make_unique<Recurrent>(path, threads);
}

Vocabulary words_of_bundle(const std::string& path) {
  const std::string file = (fs::path(path) / "vocabulary.json").string();
  std::ifstream stream(file, std::ios::binary);
  const auto words = strict_json(std::string(std::istreambuf_iterator<char>(stream), {}));
  Vocabulary found;
  for (std::size_t id = SPECIALS; id < words.size(); ++id) found.add(words[id].get<std::string>());
  return found;
}

}  // namespace compgen
