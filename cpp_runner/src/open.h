// What draws or answers, opened from a bundle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "decoder.h"
#include "sampler.h"

namespace compgen {

// Whether the bundle has weights for our own step.
bool has_own_step(const Bundle& bundle);

// Throws UserError: it has such weights, and they are not those of its sizes. Python refuses them, too, whatever decodes.
void check_own_step(const Bundle& bundle);

// The step that decodes where `step` ("own" or "graph") is asked for; empty of a grammar.
std::string step_of(const Bundle& bundle, const std::string& step);

// Throw UserError, in Python's words, unless it is a predictor's, or a generator's.
void require_predictor(const Bundle& bundle);
void require_generator(const Bundle& bundle);

// All set `slots` to the usual number of rows if it is 0. The bundle must outlive what is opened. They throw UserError.
std::unique_ptr<Generator> open_generator(const Bundle& bundle, const std::string& step, std::int64_t& slots);
std::unique_ptr<Predictor> open_predictor(const Bundle& bundle, const std::string& step, std::int64_t beam,
                                          std::int64_t& slots);
// The generator of a network, to write with given prototypes.
std::unique_ptr<Predictor> open_writer(const Bundle& bundle, const std::string& step, std::int64_t& slots);

// Rows decoded at a time: our step goes over a batch several times, so it should stay in the cache; a graph has more to
// do between its products, which is cheaper for many rows.
constexpr std::int64_t SLOTS_OF_OWN = 60, SLOTS_OF_GRAPH = 256;
constexpr std::int64_t SLOTS_OF_BEAM = 32;  // sources, each with as many rows as the beam is wide

// What may be asked for at most: addresses of samples, rows decoded at a time, threads.
constexpr std::int64_t MOST_ADDRESSES = std::int64_t{1} << 61, MOST_SLOTS = std::int64_t{1} << 16;
constexpr int MOST_WORKERS = 1024;

}  // namespace compgen
