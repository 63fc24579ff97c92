#include "verify.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "errors.h"
#include "predict.h"
#include "schema.h"
#include "strict_json.h"

namespace compgen {
namespace {

using Json = nlohmann::json;

constexpr const char* GOLDEN = "golden.json";
// Nats, in the log-probability of a whole sample, as in compgen/trained/verification.py.
constexpr double TOLERANCE = 1e-4, TOLERANCE_IN_INTEGERS = 5e-2;
constexpr double TOLERANCE_OF_ANSWERS = 0.5;  // in integers, of a predictor, whose float32 rest differs more
constexpr std::int64_t SPREAD = 16;  // a stream may skip addresses, but no more than so many for each that it has

Tokens tokens_of(const Json& ids, const Bundle& bundle, bool limited) {
  auto tokens = ids.get<Tokens>();
  const auto size = static_cast<std::int64_t>(bundle.vocabulary.size());
  if (std::any_of(tokens.begin(), tokens.end(), [size](std::int32_t token) { return token >= size; })) {
    throw UserError("a token outside the vocabulary");
  }
  if (limited && static_cast<std::int64_t>(tokens.size()) > bundle.max_length) {
    throw UserError("a sequence of more than " + std::to_string(bundle.max_length) + " tokens");
  }
  return tokens;
}

Draw draw_of(const Json& sample, const Bundle& bundle) {
  Draw draw;
  draw.index = sample.at("index").get<std::int64_t>();
  draw.tokens = tokens_of(sample.at("tokens"), bundle, !bundle.is_grammar());  // whose sides are limited, not the whole
  draw.finished = sample.at("finished").get<bool>();
  draw.log_prob = sample.at("log_prob").get<double>();
  draw.prototypes = sample.at("prototypes").get<std::vector<std::int64_t>>();
  const auto size = std::max<std::int64_t>(static_cast<std::int64_t>(bundle.pool.sequences().size()), 1);
  const auto outside = [size](std::int64_t row) { return row >= size; };
  if (std::any_of(draw.prototypes.begin(), draw.prototypes.end(), outside)) {
    throw UserError("a prototype outside the pool");
  }
  return draw;
}

std::string place(const Draw& wanted, const Draw& found) {
  const std::string index = std::to_string(wanted.index);
  if (wanted.prototypes != found.prototypes) return index + ", prototypes";
  const auto shared = std::min(wanted.tokens.size(), found.tokens.size());
  const auto end = wanted.tokens.begin() + static_cast<std::ptrdiff_t>(shared);
  const auto differing = std::mismatch(wanted.tokens.begin(), end, found.tokens.begin()).first;
  return index + ", token " + std::to_string(differing - wanted.tokens.begin());
}

}  // namespace

Golden::Golden(const Bundle& bundle) : bundle_(bundle) {
  if (!bundle.has(GOLDEN)) throw UserError(bundle.folder.string() + ": holds no golden draws: export it again");
  try {
    const Json golden = strict_json(bundle.file(GOLDEN));
    require_schema("golden", golden);
    const Json streams = golden.value("streams", Json::array()), answers = golden.value("answers", Json::array());
    if (streams.empty() != bundle.predicts || answers.empty() == bundle.predicts) {
      throw UserError(bundle.predicts ? "expected answers of a predictor" : "expected draws of a generator");
    }
    for (const auto& stream : streams) {
      Stream read{stream.at("seed").get<std::uint64_t>(), stream.at("temperature").get<std::array<double, 2>>(), {}};
      for (const double heat : read.temperature) {
        if (!bundle.is_grammar()) warm(heat);  // a grammar's may be any above 0
      }
      for (const auto& sample : stream.at("samples")) {
        read.draws.push_back(draw_of(sample, bundle));
        const auto count = read.draws.size();
        if (count > 1 && read.draws[count - 2].index >= read.draws[count - 1].index) {
          throw UserError("addresses that do not ascend");
        }
      }
      if (read.draws.back().index - read.draws.front().index > SPREAD * static_cast<std::int64_t>(read.draws.size())) {
        throw UserError("addresses too far apart to draw all between them");
      }
      expected_.insert(expected_.end(), read.draws.begin(), read.draws.end());
      streams_.push_back(std::move(read));
    }
    for (const auto& answer : answers) {
      sources_.push_back(tokens_of(answer.at("source"), bundle, false));
      Draw draw;
      draw.index = static_cast<std::int64_t>(expected_.size());
      draw.tokens = tokens_of(answer.at("target"), bundle, true);
      draw.finished = answer.at("finished").get<bool>();
      draw.log_prob = answer.at("log_prob").get<double>();
      expected_.push_back(std::move(draw));
    }
  } catch (const UserError& error) {
    throw UserError((bundle.folder / GOLDEN).string() + ": " + error.what());
  }
}

Verified Golden::verify(const std::string& name, Generator& generator, std::int64_t slots, int workers) const {
  return compare(name, [&] {
    std::vector<Draw> found;
    for (const auto& stream : streams_) {
      Sampling sampling;
      sampling.seed = stream.seed, sampling.temperature = stream.temperature;
      sampling.start = stream.draws.front().index, sampling.stop = stream.draws.back().index + 1;
      sampling.slots = slots, sampling.workers = workers;
      auto next = stream.draws.begin();
      generator.sample(sampling, [&](Draw&& draw) {
        if (draw.index != next->index) return true;
        found.push_back(std::move(draw));
        return ++next != stream.draws.end();
      });
    }
    return found;
  });
}

Verified Golden::verify(const std::string& name, Predictor& predictor, std::int64_t slots, int workers) const {
  return compare(name, [&] {
    Answering how;
    how.slots = slots, how.workers = workers;
    std::vector<Draw> found;
    for (auto& best : answers(bundle_, predictor, sources_, how)) {
      Draw draw;
      draw.index = static_cast<std::int64_t>(found.size());
      draw.tokens = std::move(best[0].target), draw.finished = best[0].finished, draw.log_prob = best[0].log_prob;
      found.push_back(std::move(draw));
    }
    return found;
  });
}

Verified Golden::compare(const std::string& name, const std::function<std::vector<Draw>()>& again) const {
  const auto began = std::chrono::steady_clock::now();
  const auto found = again();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  Verified verified;
  verified.runtime = name, verified.samples = expected_.size();
  verified.allowed = !bundle_.approximate ? TOLERANCE : bundle_.predicts ? TOLERANCE_OF_ANSWERS : TOLERANCE_IN_INTEGERS;
  verified.rate = static_cast<double>(expected_.size()) / seconds;
  for (std::size_t k = 0; k < expected_.size(); ++k) {
    const Draw& wanted = expected_[k];
    const Draw& given = found.at(k);
    if (wanted.tokens == given.tokens && wanted.finished == given.finished && wanted.prototypes == given.prototypes) {
      ++verified.equal;
      verified.largest = std::max(verified.largest, std::abs(wanted.log_prob - given.log_prob));
    } else if (verified.first.empty()) {
      verified.first = place(wanted, given);
    }
  }
  return verified;
}

std::string table(const std::vector<Verified>& rows) {
  std::ostringstream text;
  text << std::left << std::setw(12) << "runtime" << std::right << std::setw(8) << "samples" << std::setw(7) << "equal"
       << "  " << std::left << std::setw(24) << "first difference" << std::right << std::setw(15) << "log-probability"
       << std::setw(11) << "samples/s" << "\n";
  for (const auto& row : rows) {
    std::ostringstream largest;
    largest << std::scientific << std::setprecision(1) << row.largest;
    text << std::left << std::setw(12) << row.runtime << std::right << std::setw(8) << row.samples << std::setw(7)
         << row.equal << "  " << std::left << std::setw(24) << (row.first.empty() ? "none" : row.first) << std::right
         << std::setw(15) << largest.str() << std::setw(11) << std::llround(row.rate) << "\n";
  }
  return text.str();
}

}  // namespace compgen
