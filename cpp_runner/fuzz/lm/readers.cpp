// Readers of compgen-ngram: models of KenLM, mixtures and sentences.
#include "../readers.h"

#include <cmath>
#include <filesystem>

#include "binary.h"
#include "errors.h"
#include "mixture.h"
#include "models.h"
#include "sentences.h"

namespace compgen::fuzz {
namespace {

const Sentences& asked() {
  static const std::string lines = "the cat sat on a mat\nzebra été 日本\n\na b c d e f g\nthe dog ran and the cat\n";
  static const Sentences found = [] {
    Sentences sentences;
    split_sentences(lines, 1, true, sentences);
    return sentences;
  }();
  return found;
}

void read_model(const std::string& input) {
  const std::string path = folder() + "/model";
  write_file(path, input);
  const Models models = open_models({path}, 1);
  Scores scores;
  models[0]->score(asked(), scores);
  for (const float log10 : scores.log10) require(log10 <= 0, "a probability is no more than one");
}

void read_mixture(const std::string& input) {
  const std::string path = folder() + "/mixture";
  write_file(path, input);
  const Mixture mixture = open_mixture(path);
  for (const auto& row : mixture.weights) {
    double sum = 0;
    for (const double weight : row) sum += weight;
    require(row.size() == mixture.models.size() && std::abs(sum - 1) < 1e-4, "the weights of a row sum to one");
  }
  Scores some;
  some.log10 = {-1.0F, 0.0F, -99.0F}, some.known = {0, 8, 1};
  const std::vector<Scores> scores(mixture.models.size(), some);
  std::vector<double> losses;
  mixture.losses(scores, losses);
  for (const double loss : losses) require(!std::isnan(loss), "a loss is a number");
}

void check_sentences(const std::string& lines, std::uint64_t number) {
  Sentences with, without;
  split_sentences(lines, number, true, with);
  split_sentences(lines, number, false, without);
  require(with.words == without.words, "words do not depend on blank lines");
  std::size_t words = 0;
  for (const auto length : with.lengths) words += length - 1;
  require(words == with.words.size(), "the lengths of sentences are those of their words");
}

// What is packed goes by way of a file, which is read a megabyte at a time; else that takes most of the time.
void read_sentences(const std::string& input) {
  if (input.compare(0, 2, "\x1f\x8b") != 0) return check_sentences(input, 1);
  const std::string path = folder() + "/text";
  write_file(path, input);
  Text text(path);
  std::string lines;
  std::uint64_t number = 0;
  while (text.next(lines, number)) check_sentences(lines, number);
}

}  // namespace

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all = {
      {"binary", read_model}, {"arpa", read_model}, {"mixture", read_mixture}, {"sentences", read_sentences}};
  return all;
}

}  // namespace compgen::fuzz
