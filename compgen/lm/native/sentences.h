// Texts of sentences, one a line, and the words in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace compgen {

// The words of some lines, in a row; views of the lines.
struct Sentences {
  std::vector<std::string_view> words;
  std::vector<std::uint32_t> lengths;  // tokens of each sentence; its end is one

  std::size_t tokens() const { return words.size() + lengths.size(); }
};

// Splits lines into words. A blank line is a sentence without words if `blank`, else none. `line` is the number of the
// first. Throws UserError, which begins with the line: bytes that are not UTF-8, a control character, a special symbol.
void split_sentences(const std::string& lines, std::uint64_t line, bool blank, Sentences& sentences);

// What a text is read from: a file, plain or compressed by gzip, or standard input, which is `-`.
class Text {
 public:
  // Throws UserError unless there is such a file, and one of lines, which may be `packed`.
  explicit Text(const std::string& path, bool packed = true);
  ~Text();

  // Reads about 1 MB that end where a line does, and says which line is their first; false at the end of the text.
  // Throws UserError: the file cannot be read, is not whole, or has lines that end with CR alone.
  bool next(std::string& lines, std::uint64_t& line);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  std::string rest_;        // of what was read, the beginning of the next line
  std::uint64_t line_ = 1;  // the number of the next line
};

}  // namespace compgen
