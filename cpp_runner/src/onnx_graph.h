// A graph of a bundle in ONNX Runtime, which is opened at run time: the library in use is then whichever is installed,
// of this API version or later. The environment variable COMPGEN_ONNXRUNTIME names it, if the system does not know it.
#pragma once

#define ORT_API_MANUAL_INIT
#include <onnxruntime/onnxruntime_cxx_api.h>

#include <functional>
#include <string>
#include <vector>

#include "bundle.h"

namespace compgen {

// Opens the library, unless it is open, before anything else of it is used. Threads may call this at the same time.
// Throws UserError if it cannot be had.
void open_library();

class Graph {
 public:
  // A graph that asks for no other inputs than `known`, and gives the outputs.
  Graph(const Ort::Env& env, const Bundle& bundle, const std::string& name, const std::vector<std::string>& known,
        std::vector<std::string> outputs);

  // The type of the numbers of an output.
  ONNXTensorElementDataType type_of(const std::string& output) const;

  // Runs the graph on the named inputs that it asks for. `results` are its outputs; those that are empty it makes.
  void run(const std::function<Ort::Value(const std::string&)>& feed, std::vector<Ort::Value>& results);

  // Refuses what the graph gives.
  [[noreturn]] void damaged(const std::string& what) const;

 private:
  Ort::Session session_{nullptr};
  std::vector<std::string> inputs_, outputs_;
  std::string where_;
};

}  // namespace compgen
