// What the programs' command lines have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "errors.h"
#include "numbers.h"
#include "text.h"

namespace compgen {

template <class Value>
struct Held {
  using Type = Value;
};
template <class Value>
struct Held<std::optional<Value>> {
  using Type = Value;
};

// An option that is a whole number. CLI11 itself would take octal, hexadecimal and binary numbers, too: 00100 for 64.
template <class Value>
CLI::Option* add_whole(CLI::App& app, const std::string& name, Value& value, const std::string& help,
                       std::uint64_t least, std::uint64_t most) {
  const auto take = [&value, name, least, most](const std::string& text) {
    value = static_cast<typename Held<Value>::Type>(whole_number(name, text, least, most));
  };
  return app.add_option_function<std::string>(name, take, help)->type_name("INT");
}

// Prints an error on one line, also where there is no memory to make it one.
inline void tell(const char* what) noexcept {
  try {
    std::cerr << "error: " + printable(what) + "\n";
  } catch (...) {
    std::cerr << "error: " << what << "\n";
  }
}

// What is wrong with words that are neither options nor their values, as Python says it: of the first option, if one is.
inline std::string wrong_words(const std::vector<std::string>& words) {
  std::string all;
  for (const auto& word : words) {
    if (word.rfind("--", 0) == 0) return "No such option: " + word.substr(0, word.find('='));
    if (word.size() > 1 && word[0] == '-') return "No such option: " + word.substr(0, 2);
    all += (all.empty() ? "" : " ") + word;
  }
  return "Got unexpected extra argument(s) (" + all + ")";
}

// Reads a command line; the exit code if there is no more to do, as after --help. Throws UserError.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  std::vector<CLI::Option*> once;
  for (auto* option : app.get_options()) {
    if (!option->get_positional() && option->get_items_expected_max() == 1) once.push_back(option);
  }
  for (auto* option : once) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // which is refused below
  try {
    app.parse(argc, argv);
    for (const auto* option : once) {
      if (option->count() < 2) continue;
      throw UserError(option->get_name() + ": given " + std::to_string(option->count()) + " times, expected once");
    }
    return std::nullopt;
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ExtrasError&) {
    throw UserError(wrong_words(app.remaining()) + "; --help lists the options");
  } catch (const CLI::ParseError& error) {
    throw UserError(std::string(error.what()) + "; --help lists the options");
  }
}

}  // namespace compgen
