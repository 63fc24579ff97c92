// Packing by zlib, where the program was built with it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace compgen {

// Packs text as compgen's Python does: at level 6, with neither a name nor a time inside, so that the same text gives the
// same file.
class Gzip {
 public:
  // `where` is what is written. Throws UserError: this program was built without zlib.
  explicit Gzip(const std::string& where);
  ~Gzip();

  // What can be written after some more text; it may be nothing yet.
  std::string packed(const std::string& text);
  // What is left.
  std::string end();

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

// Unpacks a little at a time. There may be several files of gzip, one after another, with bytes of 0 between and behind
// them, as Python has it.
class Unpacker {
 public:
  using Source = std::function<std::size_t(char* to, std::size_t most)>;  // gives so many bytes, 0 at the end

  // `where` is what is read. Throws UserError: this program was built without zlib.
  Unpacker(Source source, const std::string& where);
  ~Unpacker();

  // Up to so many bytes; 0 at the end. Throws UserError: what is packed is damaged or cut short.
  std::size_t read(char* to, std::size_t most);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

// The content of `where`, unpacked if it begins as gzip does. Throws UserError: it is cut short or damaged, or no gzip
// though its name ends in .gz, or this program was built without zlib.
std::string unpacked(std::string content, const std::string& where);

}  // namespace compgen
