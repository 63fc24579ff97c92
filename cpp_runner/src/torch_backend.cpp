// TorchScript: the module `sampler.ts` of a bundle, whose methods take and give what the ONNX graphs do.
#include <ATen/Parallel.h>
#include <torch/script.h>

#include <sstream>

#include "decoder.h"
#include "errors.h"

namespace compgen {
namespace {

constexpr const char* SCRIPT = "sampler.ts";

template <class Real>
class TorchBackend final : public Backend<Real> {
 public:
  explicit TorchBackend(const Bundle& bundle) : bundle_(bundle) {
    at::set_num_threads(1);  // workers run side by side instead
    if (!bundle.has(SCRIPT)) throw UserError(bundle.folder.string() + ": was exported without TorchScript");
    std::istringstream stream(bundle.file(SCRIPT));
    try {
      module_ = torch::jit::load(stream);
      module_.eval();
      for (const char* name : {"encode", "start", "step"}) module_.get_method(name);
    } catch (const c10::Error& error) {
      throw UserError((bundle.folder / SCRIPT).string() + ": torch cannot load it: " + error.what_without_backtrace());
    }
  }

  Encoded<Real> encode(const std::vector<std::int64_t>& tokens, std::int64_t count, std::int64_t width) override {
    const auto results = call("encode", {view(tokens, {count, width})}, 3);
    Encoded<Real> encoded;
    const auto keys = static_cast<std::size_t>(count * bundle_.prototypes * width * bundle_.attention);
    encoded.keys.resize(keys), encoded.values.resize(keys);
    encoded.final.resize(static_cast<std::size_t>(count * bundle_.prototypes * bundle_.final_size));
    copy(results[0], encoded.keys), copy(results[1], encoded.values), copy(results[2], encoded.final);
    return encoded;
  }

  void start(const Aligned<Real>& final, std::int64_t rows, Aligned<Real>& hidden, Aligned<Real>& cell) override {
    const auto size = static_cast<std::size_t>(rows * bundle_.hidden);
    hidden.assign(size, Real{0}), cell.assign(size, Real{0});
    if (bundle_.prototypes == 0) return;
    const auto results = call("start", {view(final, {rows, bundle_.prototypes, bundle_.final_size})}, 2);
    copy(results[0], hidden), copy(results[1], cell);
  }

  void step(Batch<Real>& batch) override {
    const std::int64_t b = batch.rows, n = bundle_.prototypes, a = bundle_.attention, h = bundle_.hidden;
    const std::int64_t t = batch.width;
    batch.pad(a);
    const auto results = call("step",
                              {view(batch.token, {b}), view(batch.hidden, {b, h}), view(batch.cell, {b, h}),
                               view(batch.fed, {b, bundle_.output}), view(batch.position, {b}), view(batch.half, {b}),
                               view(batch.uniform, {b}), view(batch.temperature, {2}), view(batch.padded.keys, {b, n, t, a}),
                               view(batch.padded.values, {b, n, t, a}), view(batch.padded.tokens, {b, n, t})},
                              6);
    copy(results[0], batch.next_token), copy(results[1], batch.log_probs), copy(results[2], batch.next_half);
    copy(results[3], batch.next_hidden), copy(results[4], batch.next_cell), copy(results[5], batch.next_fed);
  }

 private:
  // A tensor over the beginning of an array, which outlives it.
  template <class Numbers>
  static torch::jit::IValue view(const Numbers& array, std::vector<std::int64_t> shape) {
    using T = typename Numbers::value_type;
    return torch::from_blob(const_cast<T*>(array.data()), shape, c10::CppTypeToScalarType<T>::value);
  }

  // Copies a tensor to the beginning of an array.
  template <class Numbers>
  static void copy(const at::Tensor& tensor, Numbers& array) {
    if (tensor.numel() > static_cast<std::int64_t>(array.size())) throw UserError("sampler.ts gives more than expected");
    using T = typename Numbers::value_type;
    const auto whole = tensor.to(c10::CppTypeToScalarType<T>::value).contiguous();
    std::copy_n(whole.template data_ptr<T>(), whole.numel(), array.begin());
  }

  std::vector<at::Tensor> call(const char* name, std::vector<torch::jit::IValue> inputs, std::size_t outputs) {
    const c10::InferenceMode inference;
    try {
      const auto result = module_.get_method(name)(std::move(inputs));
      if (!result.isTuple() || result.toTupleRef().elements().size() != outputs) {
        throw UserError(std::string(SCRIPT) + ": " + name + " does not give " + std::to_string(outputs) + " tensors");
      }
      std::vector<at::Tensor> tensors;
      for (const auto& element : result.toTupleRef().elements()) tensors.push_back(element.toTensor());
      return tensors;
    } catch (const c10::Error& error) {
      throw UserError((bundle_.folder / SCRIPT).string() + ": " + error.what_without_backtrace());
    }
  }

  const Bundle& bundle_;
  torch::jit::Module module_;
};

}  // namespace

template <class Real>
std::unique_ptr<Backend<Real>> make_backend(const Bundle& bundle, bool) {
  return std::make_unique<TorchBackend<Real>>(bundle);
}

template std::unique_ptr<Backend<float>> make_backend<float>(const Bundle&, bool);
template std::unique_ptr<Backend<double>> make_backend<double>(const Bundle&, bool);

std::unique_ptr<Predictor> make_transformer(const Bundle& bundle) {
  throw UserError(bundle.folder.string() + ": a Transformer's bundle runs in ONNX Runtime alone: use compgen-sample");
}

}  // namespace compgen
