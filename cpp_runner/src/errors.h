// Errors that are a user's to mend: the program prints them on one screen and exits with code 2.
#pragma once

#include <stdexcept>

namespace compgen {

struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace compgen
