#include "translution/train/offload.h"

#include <ATen/ATen.h>
#include <torch/utils.h>

#include <algorithm>
#include <set>

#include "translution/core/error.h"
#include "translution/io/safetensors.h"
#include "translution/models/check_weights.h"
#include "translution/models/cost.h"
#include "translution/ops/packed_weights.h"
#include "translution/ops/runtime.h"
#include "translution/train/clip.h"
#include "translution/train/offload_check.h"

namespace translution {

using namespace detail;

namespace {

constexpr int64_t kPage = 1 << 16;  // a multiple of every system's page

int64_t padded_bytes(const ParameterSpec& spec) {
  return (spec.count() * static_cast<int64_t>(sizeof(float)) + kPage - 1) / kPage * kPage;
}

torch::Tensor tensor_in(const std::shared_ptr<const WorkingFile>& file, int64_t offset,
                        const std::vector<int64_t>& shape) {
  return at::from_blob(
      file->data() + offset, shape, [file](void*) {}, at::TensorOptions(at::kFloat));
}

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

Offload::Offload(const std::string& directory, const ModelOptions& model)
    : directory_(directory),
      model_(model),
      lock_(directory_),
      found_(read_offload_mark(directory_)) {
  updates_after(0);  // until the files are filled
  for (const auto& file : offload_files(model))
    layers_.push_back(make_layer(directory_ + "/" + file.name, file.parameters));
}

Offload::Layer Offload::make_layer(const std::string& path,
                                   const std::vector<ParameterSpec>& specs) {
  int64_t bytes = 0;
  for (const auto& spec : specs) bytes += padded_bytes(spec);
  const auto file = std::make_shared<const WorkingFile>(path, 3 * bytes);
  Layer layer{file, {}, {}, {}, {}};
  layer.weights = {file->data(), static_cast<size_t>(bytes)};
  layer.moments = {file->data() + bytes, static_cast<size_t>(2 * bytes)};
  int64_t offset = 0;
  for (const auto& spec : specs) {  // the moments of a parameter are neighbours
    layer.entries.push_back({spec.name, tensor_in(file, offset, spec.shape),
                             tensor_in(file, bytes + 2 * offset, spec.shape),
                             tensor_in(file, bytes + 2 * offset + padded_bytes(spec), spec.shape)});
    offset += padded_bytes(spec);
  }
  return layer;
}

Network Offload::build(const at::Generator& generator) {
  Network network(model_, generator, [this](int64_t layer, torch::nn::Module& block) {
    take(block, join("backbone.blocks.", layer, "."));
  });
  take(network.module(), "");
  names_ = network.module().named_parameters().keys();
  const auto parameters = network.module().parameters();
  const auto layers = parameter_layers(network);
  for (size_t layer = 0; layer < layers.size(); ++layer)
    for (const size_t p : layers[layer]) layers_[layer].parameters.push_back(parameters[p]);
  runtime().release_pool();
  return network;
}

// Moves the parameters that are not in the files yet.
void Offload::take(torch::nn::Module& part, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  for (auto& item : part.named_parameters()) {
    const auto& to = entry(prefix + item.key()).weight;
    if (item.value().data_ptr() == to.data_ptr()) continue;
    to.copy_(item.value());
    item.value().set_data(to);
    write_back(to);
  }
}

void Offload::attach(AdamW::State& state) const {
  state.first.clear(), state.second.clear();
  for (const auto& name : names_) {
    state.first.push_back(entry(name).first);
    state.second.push_back(entry(name).second);
  }
}

void Offload::load(const std::string& checkpoint) const {
  std::set<const void*> filled;
  const auto fill = [&](const at::Tensor& to, const std::string& name, const at::Tensor& from) {
    ensure(from.sizes() == to.sizes() && from.scalar_type() == to.scalar_type(), checkpoint,
           ": expected a float32 tensor ", name, " ", times(to.sizes()), ", got ",
           from.scalar_type(), " ", times(from.sizes()));
    require_finite({{name, from}}, checkpoint);
    to.copy_(from);
    filled.insert(to.data_ptr());
    write_back(to);
    return at::empty({0});
  };
  const torch::NoGradGuard no_grad;
  load_safetensors(checkpoint + "/model.safetensors",
                   [&](const std::string& name, const at::Tensor& tensor) {
                     return fill(entry(name).weight, name, tensor);
                   });
  load_safetensors(checkpoint + "/optimizer.safetensors", [&](const std::string& name,
                                                              const at::Tensor& tensor) {
    const std::string first = "first.", second = "second.";
    const bool is_first = name.rfind(first, 0) == 0;
    const auto& of = entry(name.substr(std::min(name.size(), (is_first ? first : second).size())));
    return fill(is_first ? of.first : of.second, name, tensor);
  });
  size_t expected = 0;
  for (const auto& layer : layers_) expected += 3 * layer.entries.size();
  ensure(filled.size() == expected, checkpoint, ": expected ", expected, " tensors, got ",
         filled.size());
}

const Offload::Entry& Offload::entry(const std::string& name) const {
  for (const auto& layer : layers_)
    for (const auto& entry : layer.entries)
      if (entry.name == name) return entry;
  throw std::runtime_error(join("offload: ", model_.name(), " has no parameter '", name, "'"));
}

void Offload::mark(int64_t step, bool updating) const {
  auto mark = offload_mark(model_);
  mark.step = step;
  mark.updating = updating;
  write_offload_mark(directory_, mark);
}

void Offload::prefetch_weights(size_t layer) const {
  layers_[layer].file->prefetch(layers_[layer].weights);
}

void Offload::prefetch_moments(size_t layer) const {
  layers_[layer].file->prefetch(layers_[layer].moments);
}

void Offload::release(size_t layer) const {
  drop_packed_copies(layer);
  layers_[layer].file->release(layers_[layer].weights);
  layers_[layer].file->release(layers_[layer].moments);
}

void Offload::release_all() const {
  for (size_t layer = 0; layer < layers_.size(); ++layer) release(layer);
}

void Offload::drop_packed_copies(size_t layer) const {
  for (const auto& parameter : layers_[layer].parameters) drop_packed(parameter);
}

void Offload::write_back(const at::Tensor& tensor) const {
  for (const auto& layer : layers_)
    if (layer.file->contains(bytes_of(tensor))) layer.file->write_back(bytes_of(tensor));
  release(bytes_of(tensor));
}

void Offload::release(std::string_view bytes) const {
  for (const auto& layer : layers_)
    if (layer.file->contains(bytes)) layer.file->release(bytes);
}

}  // namespace translution
