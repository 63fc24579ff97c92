// Recurrent networks in ONNX Runtime.
#include "backend.h"
#include "onnx_graph.h"

namespace compgen {
namespace {

template <class Real>
class OnnxBackend final : public Backend<Real> {
 public:
  OnnxBackend(const Bundle& bundle, bool decodes) : bundle_(bundle) {
    if (decodes) {
      step_ = std::make_unique<Graph>(
          env_, bundle, "step.onnx",
          names({"token", "hidden", "cell", "fed", "position", "half", "keys", "values", "memory_tokens", "uniform",
                 "temperature"}),
          names({"next_token", "log_probs", "next_half", "next_hidden", "next_cell", "next_fed"}));
    }
    if (bundle.prototypes > 0) {
      encoder_ = std::make_unique<Graph>(env_, bundle, "encoder.onnx", names({"tokens"}),
                                         names({"keys", "values", "final"}));
    }
    if (bundle.has("start.onnx")) {
      start_ = std::make_unique<Graph>(env_, bundle, "start.onnx", names({"final"}),
                                       names({"first_hidden", "first_cell"}));
    }
  }

  Encoded<Real> encode(const std::vector<std::int64_t>& tokens, std::int64_t count, std::int64_t width) override {
    const std::int64_t n = bundle_.prototypes, a = bundle_.attention, d = bundle_.final_size;
    Encoded<Real> encoded;
    std::vector<Ort::Value> results;
    results.push_back(make(encoded.keys, {count, n, width, a}));
    results.push_back(make(encoded.values, {count, n, width, a}));
    results.push_back(make(encoded.final, {count, n, d}));
    encoder_->run(
        [&](const std::string&) { return view(tokens, {count, width}); },
        results);
    return encoded;
  }

  void start(const Aligned<Real>& final, std::int64_t rows, Aligned<Real>& hidden, Aligned<Real>& cell) override {
    const std::int64_t h = bundle_.hidden;
    std::vector<Ort::Value> results;
    results.push_back(make(hidden, {rows, h}));
    results.push_back(make(cell, {rows, h}));
    if (!start_) return;  // a network that does not start from what it has read starts from zeros
    start_->run(
        [&](const std::string&) { return view(final, {rows, bundle_.prototypes, bundle_.final_size}); },
        results);
  }

  // ONNX Runtime adds up the products of a single row in another order than those of many. With two rows the last draws
  // of a range are the same as in the middle of a longer one, to the last bit of a probability.
  void step(Batch<Real>& batch) override {
    if (batch.rows != 1) return run(batch);
    Batch<Real> two = batch.twice();
    run(two);
    batch.take_first(two);
  }

 private:
  void run(Batch<Real>& batch) {
    const std::int64_t b = batch.rows, n = bundle_.prototypes, a = bundle_.attention, h = bundle_.hidden;
    const std::int64_t f = bundle_.output, v = static_cast<std::int64_t>(bundle_.vocabulary.size());
    const std::int64_t t = batch.width;
    batch.pad(a);
    std::vector<Ort::Value> results;
    results.push_back(view(batch.next_token, {b}));
    results.push_back(view(batch.log_probs, {b, v}));
    results.push_back(view(batch.next_half, {b}));
    results.push_back(view(batch.next_hidden, {b, h}));
    results.push_back(view(batch.next_cell, {b, h}));
    results.push_back(view(batch.next_fed, {b, f}));
    step_->run(
        [&](const std::string& name) {
          if (name == "token") return view(batch.token, {b});
          if (name == "position") return view(batch.position, {b});
          if (name == "half") return view(batch.half, {b});
          if (name == "hidden") return view(batch.hidden, {b, h});
          if (name == "cell") return view(batch.cell, {b, h});
          if (name == "fed") return view(batch.fed, {b, f});
          if (name == "uniform") return view(batch.uniform, {b});
          if (name == "temperature") return view(batch.temperature, {2});
          if (name == "keys") return view(batch.padded.keys, {b, n, t, a});
          if (name == "values") return view(batch.padded.values, {b, n, t, a});
          return view(batch.padded.tokens, {b, n, t});
        },
        results);
  }

  static std::vector<std::string> names(std::vector<std::string> list) { return list; }

  // A tensor over the beginning of an array, which outlives it.
  template <class Numbers>
  Ort::Value view(const Numbers& array, const std::vector<std::int64_t>& shape) const {
    std::size_t count = 1;
    for (const auto size : shape) count *= static_cast<std::size_t>(size);
    // ONNX Runtime takes no pointers to const, and writes to outputs alone.
    using T = typename Numbers::value_type;
    return Ort::Value::CreateTensor<T>(memory_, const_cast<T*>(array.data()), count, shape.data(), shape.size());
  }

  Ort::Value make(Aligned<Real>& array, const std::vector<std::int64_t>& shape) const {
    std::size_t count = 1;
    for (const auto size : shape) count *= static_cast<std::size_t>(size);
    array.assign(count, Real{0});
    return view(array, shape);
  }

  Ort::Env env_{ORT_LOGGING_LEVEL_FATAL, "compgen"};  // what goes wrong is thrown, in one line
  Ort::MemoryInfo memory_ = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const Bundle& bundle_;
  std::unique_ptr<Graph> step_, encoder_, start_;
};

}  // namespace

template <class Real>
std::unique_ptr<Backend<Real>> make_backend(const Bundle& bundle, bool decodes) {
  open_library();
  return std::make_unique<OnnxBackend<Real>>(bundle, decodes);
}

template std::unique_ptr<Backend<float>> make_backend<float>(const Bundle&, bool);
template std::unique_ptr<Backend<double>> make_backend<double>(const Bundle&, bool);

}  // namespace compgen
