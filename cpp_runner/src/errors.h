// Errors that are a user's to mend: the program prints them on one screen and exits with code 2.
#pragma once

#include <stdexcept>
#include <string>

namespace compgen {

struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The bundle and the options give no samples, or no more.
struct ExhaustedError : UserError {
  using UserError::UserError;
};

// What a library says, as part of one line of ours: no line ends or other control characters, and not all of it.
inline std::string one_line(const std::string& text) {
  constexpr std::size_t MOST = 200;
  std::string line;
  for (const char c : text) {
    if (line.size() >= MOST) break;
    const bool blank = static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 127;
    if (!blank) line += c;
    else if (!line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace compgen
