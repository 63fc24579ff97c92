// Transformers in ONNX Runtime, one token at a time, with the keys and values of what is written; see
// compgen/runtime/onnx_transformer.py and cached.py.
#include "decoder.h"
#include "onnx_graph.h"

namespace compgen {
namespace {

using Shape = std::vector<std::int64_t>;

struct Graphs {
  explicit Graphs(const Bundle& bundle)
      : encoder(env, bundle, "encoder.onnx", {"source"}, {"memory_keys", "memory_values"}),
        step(env, bundle, "step.onnx",
             {"token", "position", "source", "memory_keys", "memory_values", "keys", "values"},
             {"log_probs", "next_keys", "next_values"}) {}

  Ort::Env env{ORT_LOGGING_LEVEL_FATAL, "compgen"};  // what goes wrong is thrown, in one line
  Graph encoder, step;
};

template <class Real>
class TransformerDecoder final : public Decoder {
 public:
  TransformerDecoder(const Bundle& bundle, Graphs& graphs)
      : bundle_(bundle), graphs_(graphs), vocabulary_(static_cast<std::int64_t>(bundle.vocabulary.size())) {}

  void open(const std::vector<std::int64_t>& sources, std::int64_t rows, std::int64_t width) override {
    rows_ = rows, width_ = width, sources_ = sources, step_ = 0;
    token.assign(static_cast<std::size_t>(rows), BOS);
    auto results = empty(2);
    graphs_.encoder.run([&](const std::string&) { return view(sources_, {rows_, width_}); }, results);
    memory_keys_ = array_of(graphs_.encoder, results[0]), memory_values_ = array_of(graphs_.encoder, results[1]);
    for (auto* memory : {&memory_keys_, &memory_values_}) {
      if (memory->shape.size() != 5 || memory->shape[0] != rows) graphs_.encoder.damaged("keys of another shape");
    }
    keys_ = nothing(memory_keys_), values_ = nothing(memory_values_);
  }

  void advance() override {
    const std::vector<std::int64_t> positions(token.size(), step_);
    auto results = empty(3);
    graphs_.step.run(
        [&](const std::string& name) {
          if (name == "token") return view(token, {rows_});
          if (name == "position") return view(positions, {rows_});
          if (name == "source") return view(sources_, {rows_, width_});
          if (name == "memory_keys") return view(memory_keys_.numbers, memory_keys_.shape);
          if (name == "memory_values") return view(memory_values_.numbers, memory_values_.shape);
          return name == "keys" ? view(keys_.numbers, keys_.shape) : view(values_.numbers, values_.shape);
        },
        results);
    const Array found = array_of(graphs_.step, results[0]);
    if (found.shape != Shape{rows_, vocabulary_}) graphs_.step.damaged("log_probs of another shape");
    keys_ = array_of(graphs_.step, results[1]), values_ = array_of(graphs_.step, results[2]);
    for (auto* written : {&keys_, &values_}) {
      if (written->shape.empty() || written->shape[0] != rows_) graphs_.step.damaged("keys of another shape");
    }
    take(found.numbers, bundle_);
    choose(step_++);
  }

  void keep(const std::vector<std::int64_t>& rows) override {
    for (auto* array : {&memory_keys_, &memory_values_, &keys_, &values_}) {
      array->numbers = gathered(array->numbers, array->numbers.size() / static_cast<std::size_t>(rows_), rows);
      array->shape[0] = static_cast<std::int64_t>(rows.size());
    }
    sources_ = gathered(sources_, static_cast<std::size_t>(width_), rows);
    token = gathered(token, 1, rows);
    rows_ = static_cast<std::int64_t>(rows.size());
  }

 private:
  struct Array {
    Shape shape;  // (B, ...)
    std::vector<Real> numbers;
  };

  static constexpr ONNXTensorElementDataType TYPE = Ort::TypeToTensorType<Real>::type;

  static std::vector<Ort::Value> empty(std::size_t count) {
    std::vector<Ort::Value> values;
    for (std::size_t k = 0; k < count; ++k) values.emplace_back(nullptr);
    return values;
  }

  // A tensor over an array, which outlives it.
  template <class T>
  Ort::Value view(const std::vector<T>& array, const Shape& shape) const {
    static T none;  // an array without numbers has no address
    // ONNX Runtime takes no pointers to const, and does not write to inputs.
    T* const data = array.empty() ? &none : const_cast<T*>(array.data());
    return Ort::Value::CreateTensor<T>(memory_, data, array.size(), shape.data(), shape.size());
  }

  static Array array_of(const Graph& graph, const Ort::Value& value) {
    if (!value.IsTensor()) graph.damaged("what is no tensor");
    const auto info = value.GetTensorTypeAndShapeInfo();
    if (info.GetElementType() != TYPE) graph.damaged("numbers of another type");
    const Real* const numbers = value.GetTensorData<Real>();
    return {info.GetShape(), std::vector<Real>(numbers, numbers + info.GetElementCount())};
  }

  // Keys or values before the first token: (B, N, h, 0, d / h), like those of the source (B, N, h, S, d / h).
  static Array nothing(const Array& memory) {
    Shape shape = memory.shape;
    shape[3] = 0;
    return {shape, {}};
  }

  const Bundle& bundle_;
  Graphs& graphs_;
  Ort::MemoryInfo memory_ = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::int64_t vocabulary_, rows_ = 0, width_ = 0, step_ = 0;
  std::vector<std::int64_t> sources_;                  // (B, S)
  Array memory_keys_, memory_values_, keys_, values_;  // of the source, and of what is written
};

class TransformerPredictor final : public Predictor {
 public:
  explicit TransformerPredictor(const Bundle& bundle) : bundle_(bundle), graphs_(bundle) {}

  std::unique_ptr<Decoder> decoder() override {
    if (graphs_.step.type_of("log_probs") == ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE) {
      return std::make_unique<TransformerDecoder<double>>(bundle_, graphs_);
    }
    return std::make_unique<TransformerDecoder<float>>(bundle_, graphs_);
  }

 private:
  const Bundle& bundle_;
  Graphs graphs_;
};

}  // namespace

std::unique_ptr<Predictor> make_transformer(const Bundle& bundle) {
  open_library();
  return std::make_unique<TransformerPredictor>(bundle);
}

}  // namespace compgen
