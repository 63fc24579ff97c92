#include "sentences.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "errors.h"
#include "gzip.h"

namespace compgen {
namespace {

constexpr std::size_t CHUNK = 1 << 20;      // bytes of text that a thread takes at a time
constexpr std::size_t BEGINNING = 1 << 16;  // bytes of a text by which its line ends are judged

// Whether `cgen lm` reads a file as data, whose sources are the sentences: `DATA` in compgen/lm/scoring.py.
bool is_data(std::string path) {
  if (path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0) path.resize(path.size() - 3);
  const std::string suffix = std::filesystem::path(path).extension().string();
  for (const char* data : {".jsonl", ".json", ".csv", ".tsv", ".parquet"})
    if (suffix == data) return true;
  return false;
}

// Refuses a text whose lines end as no system's do now: all would be one. `check_line_ends` in compgen/data/content.py.
void check_line_ends(std::string_view content, const std::string& path) {
  constexpr const char* BLANKS = " \t\n\r\v\f";
  if (content.find('\n') != std::string::npos) return;
  content.remove_prefix(std::min(content.find_first_not_of(BLANKS), content.size()));
  content = content.substr(0, content.find_last_not_of(BLANKS) + 1);
  if (content.find('\r') == std::string::npos) return;
  throw UserError((path == "-" ? "standard input" : path) +
                  ": lines end with CR alone, expected LF or CR LF: tr '\\r' '\\n' < FILE > NEW");
}

// Bytes of the character of UTF-8 that begins with this byte, of 0x80 or more; 0 if none does.
std::size_t character(const unsigned char* at, const unsigned char* end) {
  std::size_t length = *at >= 0xF0 ? 4 : *at >= 0xE0 ? 3 : 2;
  if (*at < 0xC2 || *at > 0xF4 || static_cast<std::size_t>(end - at) < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at[i] & 0xC0) != 0x80) return 0;
  if ((*at == 0xE0 && at[1] < 0xA0) || (*at == 0xED && at[1] > 0x9F)) return 0;
  if ((*at == 0xF0 && at[1] < 0x90) || (*at == 0xF4 && at[1] > 0x8F)) return 0;
  return length;
}

// What separates words: KenLM's blanks, and no other white space of Unicode. lmplz takes NUL for a blank too, and query
// vertical tab and form feed; these are refused below, as all other control characters are.
bool blank_at(const char* at) { return *at == ' ' || *at == '\t' || *at == '\r'; }

// Where a line is bad, and how; `line` is its number.
UserError bad(std::uint64_t line, const std::string& found) {
  return UserError("line " + std::to_string(line) + ": found " + found);
}

// The end of the word that begins at `at`.
const char* word_end(const char* at, const char* end, std::uint64_t line) {
  const char* begin = at;
  while (at < end) {
    const auto* byte = reinterpret_cast<const unsigned char*>(at);
    if (*byte > 0x20 && *byte < 0x7F) {
      ++at;
      continue;
    }
    if (blank_at(at)) break;
    if (*byte < 0x20 || *byte == 0x7F) {
      char code[8];
      std::snprintf(code, sizeof code, "0x%02X", *byte);
      throw bad(line, "the control character " + std::string(code));
    }
    const std::size_t length = character(byte, reinterpret_cast<const unsigned char*>(end));
    if (!length) throw bad(line, "bytes that are not UTF-8");
    at += length;
  }
  if (*begin == '<') {
    for (const std::string_view special : {"<s>", "</s>", "<unk>", "<UNK>"})
      if (std::string_view(begin, at - begin) == special)
        throw bad(line, std::string(special) + ", which has a meaning of its own in a model");
  }
  return at;
}

}  // namespace

void split_sentences(const std::string& lines, std::uint64_t line, bool blank, Sentences& sentences) {
  sentences.words.clear();
  sentences.lengths.clear();
  const char *at = lines.data(), *end = at + lines.size();
  if (line == 1 && lines.compare(0, 3, "\xEF\xBB\xBF") == 0) at += 3;  // a byte order mark
  for (; at < end; ++line) {
    const char* stop = static_cast<const char*>(std::memchr(at, '\n', end - at));
    if (!stop) stop = end;
    const std::size_t before = sentences.words.size();
    while (true) {
      while (at < stop && blank_at(at)) ++at;
      if (at == stop) break;
      const char* word = at;
      at = word_end(at, stop, line);
      sentences.words.emplace_back(word, at - word);
    }
    const std::size_t words = sentences.words.size() - before;
    if (words || blank) sentences.lengths.push_back(static_cast<std::uint32_t>(words + 1));
    at = stop + 1;
  }
}

struct Text::Stream {
  std::string path;
  int descriptor = STDIN_FILENO;
  std::string looked_at;             // the first bytes, until they are read
  std::unique_ptr<Unpacker> packed;  // if the text is compressed

  ~Stream() {
    if (descriptor != STDIN_FILENO) close(descriptor);
  }

  // As many bytes as there are, up to CHUNK; 0 at the end.
  std::size_t read(char* to) {
    if (!packed) return bytes(to, CHUNK);
    try {
      return packed->read(to, CHUNK);
    } catch (const UserError&) {
      throw UserError(path + ": cut short or broken: expected a whole file of gzip");
    }
  }

  // Unpacks from here on if the text begins as gzip does.
  void look() {
    char magic[2];
    std::size_t count = 0, more = 0;
    do count += more = bytes(magic + count, sizeof magic - count);
    while (more && count < sizeof magic);
    looked_at.assign(magic, count);
    if (looked_at != "\x1f\x8b") return;
    packed = std::make_unique<Unpacker>([this](char* to, std::size_t most) { return bytes(to, most); }, path);
  }

  std::size_t bytes(char* to, std::size_t most) {
    if (!looked_at.empty()) {
      const std::size_t copied = looked_at.copy(to, most);
      looked_at.erase(0, copied);
      return copied;
    }
    ssize_t count = 0;
    do count = ::read(descriptor, to, most);
    while (count < 0 && errno == EINTR);
    if (count < 0) throw UserError(path + ": " + std::strerror(errno) + ": expected a file of sentences");
    return static_cast<std::size_t>(count);
  }
};

Text::Text(const std::string& path, bool packed) : stream_(std::make_unique<Stream>()) {
  stream_->path = path;
  if (path != "-") {
    struct stat status {};
    stream_->descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (stream_->descriptor < 0 || fstat(stream_->descriptor, &status) < 0 || S_ISDIR(status.st_mode)) {
      throw UserError(path + ": " + std::strerror(stream_->descriptor < 0 ? errno : EISDIR) +
                      ": expected a file of sentences");
    }
    if (is_data(path)) {
      throw UserError(path + ": data, of which `cgen lm` reads the sources: use that, or give a text, a sentence a line");
    }
  }
  if (packed) stream_->look();
}

Text::~Text() = default;

bool Text::next(std::string& lines, std::uint64_t& line) {
  lines.swap(rest_);
  rest_.clear();
  line = line_;
  std::size_t whole = 0, count = 1;  // bytes up to the end of the last line; bytes read last
  while (count && (lines.size() < CHUNK || !whole)) {
    const std::size_t had = lines.size();
    lines.resize(had + CHUNK);
    count = stream_->read(&lines[had]);
    lines.resize(had + count);
    if (const void* last = memrchr(&lines[had], '\n', count)) whole = static_cast<const char*>(last) - lines.data() + 1;
  }
  if (line == 1) check_line_ends(std::string_view(lines).substr(0, BEGINNING), stream_->path);
  if (count) {  // else these lines are the last, and the last of them need not have an end
    rest_.assign(lines, whole, std::string::npos);
    lines.resize(whole);
  }
  line_ += static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  return !lines.empty();
}

}  // namespace compgen
