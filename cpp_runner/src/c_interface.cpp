// No exception leaves these functions: each becomes a code and a message.

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "compgen.h"
#include "errors.h"
#include "filters.h"
#include "open.h"
#include "output.h"
#include "predict.h"
#include "processors.h"
#include "sources.h"
#include "text.h"

using namespace compgen;

struct compgen_model {
  explicit compgen_model(const char* folder) : bundle(folder), spelling(bundle.vocabulary) {
    if (bundle.predicts) predictor = open_predictor(bundle, "own", 1, slots);
    else generator = open_generator(bundle, "own", slots);
  }

  Bundle bundle;
  Spelling spelling;
  std::int64_t slots = 0;  // the usual number of rows
  std::unique_ptr<Generator> generator;
  std::unique_ptr<Predictor> predictor;
};

namespace {

// As much of a text as there is room for, whole characters of UTF-8 alone.
void copy(const compgen_message* message, const char* text) noexcept {
  std::size_t length = std::min(std::strlen(text), message->size - 1);
  if (text[length] != 0) {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  }
  std::memcpy(message->text, text, length);
  message->text[length] = 0;
}

// The same of any text, on one line and in UTF-8: folders have names that are neither.
void tell(const compgen_message* message, const char* text) noexcept {
  if (!message || !message->text || message->size == 0) return;
  try {
    copy(message, printable(text).c_str());
  } catch (...) {  // no memory for the message that says so
    copy(message, "not enough memory");
  }
}

template <class Work>
int guarded(const compgen_message* message, Work work) noexcept {
  tell(message, "");
  try {
    work();
    return COMPGEN_OK;
  } catch (const UserError& error) {
    tell(message, error.what());
    return COMPGEN_ERROR;
  } catch (const std::bad_alloc&) {
    tell(message, "not enough memory; try a smaller batch or fewer workers");
    return COMPGEN_NO_MEMORY;
  } catch (const std::length_error&) {  // sizes beyond any memory
    tell(message, "not enough memory; try a smaller batch or fewer workers");
    return COMPGEN_NO_MEMORY;
  } catch (const std::exception& error) {
    tell(message, error.what());
    return COMPGEN_FAILED;
  } catch (...) {
    tell(message, "an error without a message");
    return COMPGEN_FAILED;
  }
}

std::int64_t within(const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return value;
  throw UserError(std::string(name) + " " + std::to_string(value) + ": expected a number from " + std::to_string(least) +
                  " to " + std::to_string(most));
}

int threads(int workers) {
  return within("workers", workers, 0, MOST_WORKERS) == 0 ? processors() : workers;
}

std::int64_t rows(std::int64_t batch, std::int64_t usual) {
  return within("batch", batch, 0, MOST_SLOTS) == 0 ? usual : batch;
}

// The program says of its options what this says of fields.
Answering answering_of(const compgen_questions& questions) {
  const auto best = within("best", questions.best, 0, WIDEST), beam = within("beam", questions.beam, 0, WIDEST);
  if (beam > 1 && beam < best) {
    throw UserError("best " + std::to_string(best) + " needs a beam as wide: found beam " + std::to_string(beam) +
                    ", expected 0 or a number from " + std::to_string(best) + " on");
  }
  return answering(std::max<std::int64_t>(best, 1), std::max<std::int64_t>(beam, 1));
}

template <class Pointer>
void require(const char* name, Pointer pointer) {
  if (!pointer) throw UserError(std::string(name) + " is NULL");
}

void draw(compgen_model& model, const compgen_draws& draws, compgen_take take, void* data) {
  if (!model.generator) throw UserError(model.bundle.folder.string() + ": a predictor, expected a generator");
  Sampling sampling;
  sampling.seed = draws.seed;
  sampling.start = within("start", draws.start, 0, MOST_ADDRESSES);
  sampling.stop = sampling.start + within("count", draws.count, 0, MOST_ADDRESSES);
  sampling.temperature = model.bundle.temperature;
  if (draws.temperature) sampling.temperature = {warm(draws.temperature[0]), warm(draws.temperature[1])};
  sampling.slots = rows(draws.batch, model.slots);
  sampling.workers = threads(draws.workers);
  model.generator->sample(sampling, [&](Draw&& one) {
    auto pair = one.finished ? halves(one.tokens, model.bundle.pool.targets()) : std::nullopt;
    if (!pair) return true;
    const std::string line = model.spelling.as_json(
        Sample{one.index, std::move(pair->first), std::move(pair->second), one.log_prob, std::move(one.prototypes), {}});
    return take(data, line.data(), line.size()) == 0;
  });
}

void predict(compgen_model& model, const compgen_questions& questions, compgen_take take, void* data) {
  if (!model.predictor) throw UserError(model.bundle.folder.string() + ": a generator, expected a predictor");
  require("sources", questions.sources);
  const auto sources = parse_sources(questions.sources, "sources", model.bundle.vocabulary);
  Answering how = answering_of(questions);
  how.slots = rows(questions.batch, how.beam > 1 ? SLOTS_OF_BEAM : model.slots);
  how.workers = threads(questions.workers);
  const auto found = answers_to_those_with_tokens(sources, [&](const std::vector<Tokens>& asked) {
    return answers(model.bundle, *model.predictor, asked, how);
  });
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (sources[k].empty()) {
      const std::string line = model.spelling.as_json(sources[k]);
      if (take(data, line.data(), line.size()) != 0) return;
    }
    for (std::size_t rank = 1; rank <= found[k].size(); ++rank) {
      const std::string line = model.spelling.as_json(sources[k], found[k][rank - 1], rank);
      if (take(data, line.data(), line.size()) != 0) return;
    }
  }
}

}  // namespace

extern "C" {

int compgen_open(const char* folder, compgen_model** model, const compgen_message* message) {
  if (model) *model = nullptr;
  return guarded(message, [&] {
    require("folder", folder), require("model", model);
    *model = new compgen_model(folder);
  });
}

int compgen_draw(compgen_model* model, const compgen_draws* draws, compgen_take take, void* data,
                 const compgen_message* message) {
  return guarded(message, [&] {
    require("model", model), require("draws", draws), require("take", take);
    draw(*model, *draws, take, data);
  });
}

int compgen_predict(compgen_model* model, const compgen_questions* questions, compgen_take take, void* data,
                    const compgen_message* message) {
  return guarded(message, [&] {
    require("model", model), require("questions", questions), require("take", take);
    predict(*model, *questions, take, data);
  });
}

void compgen_close(compgen_model* model) { delete model; }

}
