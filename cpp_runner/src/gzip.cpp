#include "gzip.h"

#include <filesystem>

#include "errors.h"

#ifdef HAS_ZLIB
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>
#endif

namespace compgen {
namespace {

// Throws UserError for what has the name of gzip and is something else.
bool is_gzip(const std::string& content, const std::string& where) {
  if (content.compare(0, 2, "\x1f\x8b") == 0) return true;
  if (content.empty() || std::filesystem::path(where).extension() != ".gz") return false;
  throw UserError(where + ": found damaged data or none of gzip, expected a gzip file");
}

}  // namespace

#ifdef HAS_ZLIB

namespace {

constexpr std::size_t PIECE = 1 << 16;  // bytes
constexpr int LEVEL = 6, MEMORY = 8, GZIP = 16 + MAX_WBITS;

Bytef* bytes_of(const std::string& text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text.data())); }

// Runs a step of zlib over what is given, in pieces, as its counters hold less than 4 GiB, and collects what it writes.
template <class Step>
int collect(z_stream& stream, const std::string& text, std::string& out, Step step) {
  int result = Z_OK;
  std::size_t taken = 0;
  do {
    stream.next_in = bytes_of(text) + taken;
    stream.avail_in = static_cast<uInt>(std::min(text.size() - taken, PIECE));
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

struct Unpacker::Stream {
  z_stream zlib = {};
  Source source;
  std::string where;
  char piece[PIECE];
  bool within = false, begun = false;  // a file of gzip, the first one

  // Whether there is more to be unpacked.
  bool more() {
    while (true) {
      if (zlib.avail_in == 0) {
        zlib.next_in = reinterpret_cast<Bytef*>(piece);
        zlib.avail_in = static_cast<uInt>(source(piece, PIECE));
      }
      if (zlib.avail_in == 0 && within) {
        throw UserError(where + ": the compressed file is cut short: found no end of its gzip data");
      }
      if (zlib.avail_in == 0 || within) return within;
      for (; begun && zlib.avail_in > 0 && *zlib.next_in == 0; --zlib.avail_in) ++zlib.next_in;
      within = zlib.avail_in > 0;
      if (within) inflateReset(&zlib);
      begun = true;
    }
  }
};

Unpacker::Unpacker(Source source, const std::string& where) : stream_(std::make_unique<Stream>()) {
  stream_->source = std::move(source), stream_->where = where;
  if (inflateInit2(&stream_->zlib, GZIP) != Z_OK) throw std::bad_alloc();
}

Unpacker::~Unpacker() { inflateEnd(&stream_->zlib); }

std::size_t Unpacker::read(char* to, std::size_t most) {
  z_stream& zlib = stream_->zlib;
  const auto room = static_cast<uInt>(std::min<std::size_t>(most, std::numeric_limits<uInt>::max()));
  zlib.next_out = reinterpret_cast<Bytef*>(to);
  zlib.avail_out = room;
  while (zlib.avail_out == room && stream_->more()) {
    const int result = inflate(&zlib, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END) stream_->within = false;
    else if (result != Z_OK) {
      const std::string why = zlib.msg ? std::string(": ") + zlib.msg : "";
      throw UserError(stream_->where + ": found damaged data, expected a gzip file" + why);
    }
  }
  return room - zlib.avail_out;
}

std::string unpacked(std::string content, const std::string& where) {
  if (!is_gzip(content, where)) return content;
  std::size_t taken = 0;
  const auto source = [&](char* to, std::size_t most) {
    const std::size_t count = content.copy(to, most, taken);
    taken += count;
    return count;
  };
  Unpacker unpacker(source, where);
  std::string out;
  char piece[PIECE];
  while (const std::size_t count = unpacker.read(piece, PIECE)) out.append(piece, count);
  return out;
}

#else

struct Gzip::Stream {};

Gzip::Gzip(const std::string& where) {
  throw UserError(where + ": this program was built without zlib: give a name without .gz");
}

Gzip::~Gzip() = default;

std::string Gzip::packed(const std::string& text) { return text; }

std::string Gzip::end() { return ""; }

struct Unpacker::Stream {};

Unpacker::Unpacker(Source, const std::string& where) {
  throw UserError(where + ": this program was built without zlib: unpack it first");
}

Unpacker::~Unpacker() = default;

std::size_t Unpacker::read(char*, std::size_t) { return 0; }

std::string unpacked(std::string content, const std::string& where) {
  if (is_gzip(content, where)) throw UserError(where + ": this program was built without zlib: unpack it first");
  return content;
}

#endif

}  // namespace compgen
