// What is said of a run beside its samples: the record of a finished one (compgen/cli/sample.py), and what an
// interrupted one must be asked for again (compgen/trained/run.py). Names and order are Python's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "bundle.h"
#include "filters.h"
#include "options.h"

namespace compgen {

// All options that decide what is written.
nlohmann::ordered_json asked_of(const Options& options, const Bundle& bundle);

// Those on which samples depend that are written as they are drawn.
nlohmann::ordered_json resumable_of(const Options& options, const Bundle& bundle);

// The content of a file; nothing if it cannot be read, as a folder.
std::string content_of(const std::filesystem::path& path);

// Whether two values are written alike: true is not 1, nor is 1.0.
bool same(const nlohmann::ordered_json& one, const nlohmann::ordered_json& other);

// A count that a file holds. Throws UserError: it is none, or too large.
std::int64_t whole(const nlohmann::ordered_json& number);

// Whether OUT is there with its record, and nothing of it in OUT.partial. Throws UserError: the record is none, or has
// other options, or another size than OUT.
bool is_finished(const std::string& out, const nlohmann::ordered_json& asked);

void write_record(const Options& options, const nlohmann::ordered_json& asked, const Counts& counts,
                  std::int64_t written, double seconds);

// Deletes the record of what was there before OUT was written anew: `forget_record` in compgen/record.py.
void forget_record(const std::string& out);

}  // namespace compgen
