#include "onnx_graph.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "errors.h"
#include "text.h"

namespace compgen {

namespace {

const OrtApi* opened() {
  const char* named = std::getenv("COMPGEN_ONNXRUNTIME");
  const std::string library = named && *named ? named : "libonnxruntime.so.1";
  setenv("ORT_DISABLE_TELEMETRY", "1", 0);  // it would write to $HOME what its makers are to know
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    throw UserError(std::string("ONNX Runtime cannot be opened: ") + dlerror() +
                    "; set COMPGEN_ONNXRUNTIME to the path of its shared library");
  }
  using GetBase = const OrtApiBase* (*)();
  const auto base = reinterpret_cast<GetBase>(dlsym(handle, "OrtGetApiBase"));
  if (!base) throw UserError(library + ": not ONNX Runtime");
  const OrtApi* api = base()->GetApi(ORT_API_VERSION);
  if (!api) {
    throw UserError(library + ": ONNX Runtime " + base()->GetVersionString() + " is too old, expected 1." +
                    std::to_string(ORT_API_VERSION) + " or later");
  }
  Ort::InitApi(api);
  return api;
}

}  // namespace

// All models share the library. What is local to a function and static is made by one thread, and again after an error.
void open_library() {
  static const OrtApi* const api = opened();
  static_cast<void>(api);
}

Graph::Graph(const Ort::Env& env, const Bundle& bundle, const std::string& name, const std::vector<std::string>& known,
             std::vector<std::string> outputs)
    : outputs_(std::move(outputs)), where_((bundle.folder / name).string()) {
  Ort::SessionOptions options;
  options.AddConfigEntry("session.load_model_format", "ONNX");
  // ONNX Runtime before 1.26 fuses transposed products in float64, too, and then has no kernel for them.
  if (bundle.dtype == "float64") {
    options.AddConfigEntry("optimization.disable_specified_optimizers", "MatmulTransposeFusion");
  }
  options.SetIntraOpNumThreads(1);  // workers run side by side instead
  options.SetInterOpNumThreads(1);
  const std::string& model = bundle.file(name);
  try {
    session_ = Ort::Session(env, model.data(), model.size(), options);
  } catch (const Ort::Exception& error) {
    throw UserError(where_ + ": ONNX Runtime cannot run it: " + one_line(error.what()));
  }
  Ort::AllocatorWithDefaultOptions allocator;
  std::set<std::string> odd(outputs_.begin(), outputs_.end());
  for (std::size_t k = 0; k < session_.GetOutputCount(); ++k) odd.erase(session_.GetOutputNameAllocated(k, allocator).get());
  for (std::size_t k = 0; k < session_.GetInputCount(); ++k) {
    inputs_.emplace_back(session_.GetInputNameAllocated(k, allocator).get());
    if (std::find(known.begin(), known.end(), inputs_.back()) == known.end()) odd.insert(inputs_.back());
  }
  if (!odd.empty()) throw UserError(where_ + ": inputs or outputs not those of a " + name + ": " + joined(odd, ", "));
}

ONNXTensorElementDataType Graph::type_of(const std::string& output) const {
  Ort::AllocatorWithDefaultOptions allocator;
  for (std::size_t k = 0; k < session_.GetOutputCount(); ++k) {
    if (session_.GetOutputNameAllocated(k, allocator).get() != output) continue;
    const auto type = session_.GetOutputTypeInfo(k);
    if (type.GetONNXType() == ONNX_TYPE_TENSOR) return type.GetTensorTypeAndShapeInfo().GetElementType();
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

void Graph::run(const std::function<Ort::Value(const std::string&)>& feed, std::vector<Ort::Value>& results) {
  std::vector<Ort::Value> values;
  std::vector<const char*> names, outputs;
  for (const auto& input : inputs_) {
    values.push_back(feed(input));
    names.push_back(input.c_str());
  }
  for (const auto& output : outputs_) outputs.push_back(output.c_str());
  try {
    session_.Run(Ort::RunOptions{nullptr}, names.data(), values.data(), values.size(), outputs.data(), results.data(),
                 results.size());
  } catch (const Ort::Exception& error) {
    throw UserError(where_ + ": ONNX Runtime cannot run it: " + one_line(error.what()));
  }
}

void Graph::damaged(const std::string& what) const { throw UserError(where_ + ": the network gives " + what); }

}  // namespace compgen
