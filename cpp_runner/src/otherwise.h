// --otherwise: the predictor that answers what a generator cannot; see compgen/cli/answering.py.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bundle.h"
#include "options.h"
#include "predict.h"

namespace compgen {

class Otherwise {
 public:
  // Opens the bundle that the options name. Throws UserError: it cannot be used, or has no predictor.
  explicit Otherwise(const Options& options);

  // Its answers to sources, greedily. Sources and answers are places in `tokens`, to which are added those that it alone
  // knows. Says on standard error what it does not know. Throws UserError: a token is kept for unknown ones.
  std::vector<Answer> answers(const std::vector<Tokens>& sources, std::vector<std::string>& tokens) const;

 private:
  // A source in its ids, and the places of the words that its spare ids stand for there.
  struct Read {
    Tokens ids;
    std::vector<std::int32_t> lent;
  };
  // What is the same for all sources: its id of each place, or UNK, and whether it knows the token.
  struct Known {
    Tokens ids;
    std::vector<bool> has;
  };

  Known known_of(const std::vector<std::string>& tokens) const;
  void remark(const std::vector<Tokens>& sources, const std::vector<std::string>& tokens, const Known& known) const;
  Read read(const Tokens& source, const std::vector<std::string>& tokens, const Known& known) const;
  // The place of each of its ids in `tokens`, which gets those that it lacks.
  Tokens places_in(std::vector<std::string>& tokens) const;

  std::string name_;
  Bundle bundle_;
  std::unique_ptr<Predictor> predictor_;
  Answering how_;
  std::size_t spares_;  // ids behind the special symbols that are lent to unknown words
};

}  // namespace compgen
