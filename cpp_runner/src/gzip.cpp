#include "gzip.h"

#include "errors.h"

#ifdef HAS_ZLIB
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#endif

namespace compgen {
namespace {

bool is_gzip(const std::string& content) { return content.compare(0, 2, "\x1f\x8b") == 0; }

}  // namespace

#ifdef HAS_ZLIB

namespace {

constexpr std::size_t PIECE = 1 << 16;  // bytes
constexpr int LEVEL = 6, MEMORY = 8, GZIP = 16 + MAX_WBITS;

Bytef* bytes_of(const std::string& text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text.data())); }

// Runs a step of zlib over what is given, in pieces that its counters can hold, and collects what it writes.
template <class Step>
int collect(z_stream& stream, const std::string& text, std::string& out, Step step) {
  int result = Z_OK;
  std::size_t taken = 0;
  do {
    const std::size_t rest = text.size() - taken;
    stream.next_in = bytes_of(text) + taken;
    stream.avail_in = static_cast<uInt>(std::min<std::size_t>(rest, std::numeric_limits<uInt>::max()));
    const uInt given = stream.avail_in;
    char piece[PIECE];
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = PIECE;
    result = step(stream);
    out.append(piece, PIECE - stream.avail_out);
    taken += given - stream.avail_in;
  } while (result == Z_OK && (stream.avail_out == 0 || taken < text.size()));
  return result;
}

}  // namespace

struct Gzip::Stream {
  z_stream zlib = {};
  gz_header header = {};
};

Gzip::Gzip(const std::string&) : stream_(std::make_unique<Stream>()) {
  z_stream& zlib = stream_->zlib;
  if (deflateInit2(&zlib, LEVEL, Z_DEFLATED, GZIP, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  stream_->header.os = 255;  // unknown, as Python has it
  deflateSetHeader(&zlib, &stream_->header);
}

Gzip::~Gzip() { deflateEnd(&stream_->zlib); }

std::string Gzip::packed(const std::string& text) {
  std::string out;
  collect(stream_->zlib, text, out, [](z_stream& stream) { return deflate(&stream, Z_NO_FLUSH); });
  return out;
}

std::string Gzip::end() {
  std::string out;
  collect(stream_->zlib, "", out, [](z_stream& stream) { return deflate(&stream, Z_FINISH); });
  return out;
}

std::string unpacked(std::string content, const std::string& where) {
  std::string out;
  while (is_gzip(content)) {  // a file may be several, one after another
    z_stream stream = {};
    if (inflateInit2(&stream, GZIP) != Z_OK) throw std::bad_alloc();
    const int result = collect(stream, content, out, [](z_stream& one) { return inflate(&one, Z_NO_FLUSH); });
    const std::string problem = stream.msg ? stream.msg : "";
    content.erase(0, stream.total_in);
    inflateEnd(&stream);
    if (result == Z_STREAM_END && content.empty()) return out;
    if (result == Z_STREAM_END && is_gzip(content)) continue;
    if (!problem.empty() || result == Z_STREAM_END) {
      throw UserError(where + ": found damaged data, expected a gzip file" + (problem.empty() ? "" : ": " + problem));
    }
    throw UserError(where + ": the compressed file is cut short: found no end of its gzip data");
  }
  return content;
}

#else

struct Gzip::Stream {};

Gzip::Gzip(const std::string& where) {
  throw UserError(where + ": this program was built without zlib: give a name without .gz");
}

Gzip::~Gzip() = default;

std::string Gzip::packed(const std::string& text) { return text; }

std::string Gzip::end() { return ""; }

std::string unpacked(std::string content, const std::string& where) {
  if (is_gzip(content)) throw UserError(where + ": this program was built without zlib: unpack it first");
  return content;
}

#endif

}  // namespace compgen
