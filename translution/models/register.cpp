// Layers and models as registered ops, for other languages with their own modules: a layer's
// initialised weights, its forward as a function of them, and the parts of a model. Ops that build
// modules take and return options as JSON; ops that run in every step take values and tensors.

#include <c10/core/InferenceMode.h>
#include <torch/library.h>
#include <torch/version.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "translution/core/error.h"
#include "translution/core/memory.h"
#include "translution/core/pairs.h"
#include "translution/models/check_weights.h"
#include "translution/models/cost.h"
#include "translution/models/generate.h"
#include "translution/models/options_json.h"
#include "translution/models/settings.h"
#include "translution/nn/attention.h"
#include "translution/nn/points.h"
#include "translution/ops/compat.h"
#include "translution/ops/onednn_limit.h"
#include "translution/ops/runtime.h"

namespace translution {

using namespace detail;

// Programs search the library file for this text before they load it.
extern const char kBuiltFor[];
const char kBuiltFor[] = "@(#)translution " TRANSLUTION_VERSION " for LibTorch " TORCH_VERSION;

namespace {

using Texts = c10::Dict<std::string, std::string>;
using Tensors = c10::Dict<std::string, at::Tensor>;

std::string build_info() { return kBuiltFor + std::string("@(#)").size(); }

std::string limit_of_onednn() { return name_of(kOnednnLimits, onednn_limit()); }

// --- process-wide runtime

int64_t threads() { return runtime().threads(); }
void set_threads(int64_t count) { runtime().set_threads(count); }
int64_t workspace() { return runtime().workspace(); }
void set_workspace(int64_t bytes) { runtime().set_workspace(bytes); }
std::string implementation() { return name_of(kImplementations, runtime().implementation()); }
void set_implementation(const std::string& name) {
  runtime().set_implementation(parse_name("implementation", kImplementations, name));
}
int64_t pool_limit() { return runtime().pool_limit(); }
void set_pool_limit(int64_t bytes) { runtime().set_pool_limit(bytes); }
int64_t pool_bytes() { return runtime().pool_bytes(); }
int64_t release_pool() { return runtime().release_pool(); }

// --- models

Family family_of(const std::string& name) { return parse_name("family", kFamilies, name); }

std::string model_options(const std::string& family, const std::string& options) {
  return to_json(model_from_json(family_of(family), options));
}

std::tuple<std::string, std::string> model_of_settings(const Texts& settings) {
  std::map<std::string, std::string> texts;
  for (const auto& entry : settings) texts[entry.key()] = entry.value();
  const auto model = read_model(texts);
  return {name_of(kFamilies, model.family), to_json(model)};
}

// All members of ModelCost as a JSON object.
std::string model_cost_op(const std::string& family, const std::string& options, int64_t batch) {
  const auto cost = model_cost(model_from_json(family_of(family), options), batch);
  return nlohmann::ordered_json({{"parameters", cost.parameters},
                                 {"forward_flops", cost.forward_flops},
                                 {"training_flops", cost.training_flops},
                                 {"weight_bytes", cost.weight_bytes},
                                 {"packed_bytes", cost.packed_bytes},
                                 {"evaluation_bytes", cost.evaluation_bytes},
                                 {"training_bytes", cost.training_bytes},
                                 {"kept_bytes", cost.kept_bytes},
                                 {"work_bytes", cost.work_bytes},
                                 {"accumulator_bytes", cost.accumulator_bytes}})
      .dump();
}

NamedTensors named_tensors(const Tensors& tensors) {
  NamedTensors result;
  for (const auto& entry : tensors) result[entry.key()] = entry.value();
  return result;
}

void require_shapes_op(const std::string& family, const std::string& options,
                       const Tensors& tensors, const std::string& where) {
  require_shapes(model_from_json(family_of(family), options), named_tensors(tensors), where);
}

void require_finite_op(const Tensors& tensors, const std::string& where) {
  require_finite(named_tensors(tensors), where);
}

// A model in evaluation mode that shares the memory of the weights.
GPT gpt_of(const std::string& options, const Tensors& weights) {
  auto model_options = model_from_json(Family::gpt, options);
  model_options.init = Init::none;
  const auto tensors = named_tensors(weights);
  require_shapes(model_options, tensors, "generate");
  GPT model(model_options);
  for (auto& parameter : model->named_parameters()) {
    const auto& weight = tensors.at(parameter.key());
    TORCH_CHECK(!weight.is_meta(), "generate: ", parameter.key(),
                " is a meta tensor without data; load weights first");
    parameter.value().set_data(weight);
  }
  model->eval();
  return model;
}

// Row b draws with the seed `seed` + b.
at::Tensor generate_op(const std::string& options, const Tensors& weights, const at::Tensor& tokens,
                       int64_t count, double temperature, int64_t top_k, double top_p,
                       int64_t seed) {
  TORCH_CHECK(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.size(1) > 0,
              "generate: expected int64 tokens [B, n] with n of 1 or more, got ",
              tokens.scalar_type(), " ", tokens.sizes());
  require(count >= 0, "generate: expected a count of 0 or more new tokens, got ", count);
  require(seed >= 0, "generate: expected a seed of 0 or more, got ", seed);
  const c10::InferenceMode off(false);  // its tensors could not share memory with other ones
  const auto model = gpt_of(options, weights);
  const auto prompts = tokens.cpu().contiguous();
  const int64_t length = tokens.size(1);
  auto texts = at::empty({tokens.size(0), length + count}, prompts.options());
  texts.narrow(1, 0, length).copy_(prompts);
  for (int64_t b = 0; b < tokens.size(0); ++b) {
    auto* text = texts[b].data_ptr<int64_t>();
    Generator generator(model, {temperature, top_k, top_p, static_cast<uint64_t>(seed + b)});
    generator.feed({text, text + length});
    for (int64_t n = 0; n < count; ++n) text[length + n] = generator.next();
  }
  return texts.to(tokens.device());
}

std::vector<std::string> method_names() { return names_of(kMethods); }

at::Tensor start_vectors_op(at::IntArrayRef shape, const std::string& init,
                            Optional<at::ScalarType> dtype, Optional<at::Device> device) {
  const auto tensors = at::TensorOptions().dtype(dtype).device(device);
  return start_vectors(shape, parse_name("init", kInits, init), tensors);
}

// --- rows of another grid; the second result is the number of rows that were copied, not filled

std::tuple<at::Tensor, int64_t> regrid_offsets_op(const at::Tensor& table, const std::string& from,
                                                  const std::string& to, const std::string& fill) {
  const auto old_table = find_offsets(from), new_table = find_offsets(to);
  require(old_table && new_table, "regrid: expected pairs of a grid, got '", from, "' and '", to,
          "'");
  RegridNote note{};
  const auto rows =
      regrid_offsets(table, *old_table, *new_table, parse_name("fill", kFills, fill), &note);
  return {rows, note.kept};
}

std::tuple<at::Tensor, int64_t> regrid_places_op(const at::Tensor& rows, at::IntArrayRef from,
                                                 at::IntArrayRef to, bool cls,
                                                 const std::string& fill) {
  RegridNote note{};
  const auto moved = regrid_places(rows, {from.vec(), cls}, {to.vec(), cls},
                                   parse_name("fill", kFills, fill), &note);
  return {moved, note.kept};
}

// --- layers

int64_t count_slots_op(const std::string& pairs) { return count_rows(pairs); }

AttentionOptions layer_options(const std::string& json, const OptionalTensor& relation,
                               int64_t slots, at::IntArrayRef mirror) {
  auto options = attention_from_json(json);
  if (!relation.has_value()) return options;
  const auto& matrix = *relation;
  TORCH_CHECK(
      matrix.dim() == 2 && matrix.size(0) == matrix.size(1) && matrix.scalar_type() == at::kLong,
      "relation: expected slots as an int64 tensor [N, N], got ", matrix.scalar_type(), " ",
      matrix.sizes());
  const auto dense = matrix.cpu().contiguous();
  const auto* first = dense.data_ptr<int64_t>();
  options.relation(std::make_shared<const OffsetTable>(OffsetTable::from_relation(
      {first, first + dense.numel()}, dense.size(0), slots, mirror.vec())));
  return options;
}

Tensors attention_start(const std::string& json, const OptionalTensor& relation, int64_t slots,
                        at::IntArrayRef mirror, Optional<at::ScalarType> dtype,
                        Optional<at::Device> device) {
  const auto tensors = at::TensorOptions().dtype(dtype).device(device);
  Tensors parameters;
  for (const auto& [name, tensor] :
       start_attention(layer_options(json, relation, slots, mirror), tensors))
    parameters.insert(name, tensor);
  return parameters;
}

std::tuple<std::string, std::string, int64_t, bool, Tensors> layout_op(
    const std::string& json, const OptionalTensor& relation, int64_t slots,
    at::IntArrayRef mirror) {
  const auto options = layer_options(json, relation, slots, mirror);
  attention_parameters(options);  // throws on invalid options
  const auto layout = attention_layout(options);
  Tensors tensors;
  for (const auto& [name, tensor] : {std::pair{"angles", layout.angles},
                                     std::pair{"position_features", layout.position_features}})
    if (tensor.defined()) tensors.insert(name, tensor);
  return {to_json(options), layout.pairs, layout.tokens, layout.shorter, tensors};
}

// The weight of each of the names that are joined by commas.
WeightOf weight_of(const char* op, const std::string& names, at::TensorList weights) {
  const auto known = SettingValue{"names", names}.words();
  TORCH_CHECK(known.size() == weights.size() && !weights.empty() && weights[0].dim() >= 2, op,
              ": expected a name for each weight, and a matrix first; got '", names, "' and ",
              weights.size(), " weights");
  return [known, weights](const char* name) {
    const auto found = std::find(known.begin(), known.end(), name);
    return found == known.end() ? at::Tensor() : weights[found - known.begin()];
  };
}

at::Tensor points_op(const at::Tensor& x, const std::string& names, at::TensorList weights,
                     at::TensorList pairs, int64_t heads, int64_t dim_head,
                     const std::string& mixing, double dropout, const std::string& precision) {
  TORCH_CHECK(pairs.size() == 13, "point_attention: expected the 13 tensors of list_points, got ",
              pairs.size());
  const PointPairs list{{pairs[0], pairs[1], pairs[2], pairs[3]},
                        {pairs[4], pairs[5], pairs[6]},
                        {pairs[7], pairs[8], pairs[9]},
                        {pairs[10], pairs[11], pairs[12]}};
  return attend_points(x, weight_of("point_attention", names, weights), list, heads, dim_head,
                       parse_name("mixing", kMixings, mixing), dropout,
                       parse_name("precision", kPrecisions, precision));
}

std::tuple<at::Tensor, at::Tensor> layer_op(
    const at::Tensor& x, const std::string& names, at::TensorList weights,
    const std::string& method, int64_t heads, const std::string& pairs, int64_t tokens,
    bool shorter, const OptionalTensor& angles, const OptionalTensor& position_features,
    at::IntArrayRef rows, double dropout, const std::string& mixing, bool map, int64_t workspace,
    const std::string& precision, const OptionalTensor& mask, at::IntArrayRef grid,
    at::IntArrayRef largest_grid, int64_t dim) {
  const auto weight = weight_of("attention_layer", names, weights);
  const AttentionLayout layout{pairs,
                               tokens,
                               shorter,
                               largest_grid.vec(),
                               value_or_undefined(angles),
                               value_or_undefined(position_features)};
  AttentionCall call;
  call.pairs.grid = grid.vec();
  call.pairs.rows = rows.vec();
  call.mask = value_or_undefined(mask);
  call.heads = heads;
  call.map = map;
  call.workspace = workspace;
  call.precision = parse_name("precision", kPrecisions, precision);
  Position position;
  position.method = parse_name("method", kMethods, method);
  position.mixing = parse_name("mixing", kMixings, mixing);
  // Traced files of older versions do not pass it. Their tables have no bias rows.
  if (dim == 0) dim = weights[0].sym_size(-2).guard_int(__FILE__, __LINE__);
  const auto result = apply_method(x, dim, position, layout, weight, std::move(call), dropout);
  return {result.out, map ? result.map : at::empty({0}, x.options())};
}

}  // namespace

// `names` are those of the weights, joined by commas: the tracer knows no lists of texts.
// Made of ops that have gradients, devices and Meta, or of none: they need no registration of
// those.
TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def("build_info() -> str", build_info);
  m.def("usable_bytes() -> int", usable_bytes);
  m.def("runtime_threads() -> int", threads);
  m.def("set_runtime_threads(int count) -> ()", set_threads);
  m.def("runtime_workspace() -> int", workspace);
  m.def("set_runtime_workspace(int bytes) -> ()", set_workspace);
  m.def("runtime_implementation() -> str", implementation);
  m.def("set_runtime_implementation(str name) -> ()", set_implementation);
  m.def("runtime_pool_limit() -> int", pool_limit);
  m.def("set_runtime_pool_limit(int bytes) -> ()", set_pool_limit);
  m.def("runtime_pool_bytes() -> int", pool_bytes);
  m.def("release_runtime_pool() -> int", release_pool);
  m.def("model_cost(str family, str options, int batch=1) -> str", model_cost_op);
  m.def(
      "generate(str options, Dict(str, Tensor) weights, Tensor tokens, int count, "
      "float temperature=1., int top_k=0, float top_p=1., int seed=0) -> Tensor",
      generate_op);
  m.def(
      "regrid_offsets(Tensor table, str from_pairs, str to_pairs, str fill='nearest') "
      "-> (Tensor, int)",
      regrid_offsets_op);
  m.def(
      "regrid_places(Tensor rows, int[] from_grid, int[] to_grid, bool cls=False, "
      "str fill='nearest') -> (Tensor, int)",
      regrid_places_op);
  m.def("require_shapes(str family, str options, Dict(str, Tensor) tensors, str where) -> ()",
        require_shapes_op);
  m.def("require_finite(Dict(str, Tensor) tensors, str where) -> ()", require_finite_op);
  m.def("onednn_limit() -> str", limit_of_onednn);
  m.def("count_slots(str pairs) -> int", count_slots_op);
  m.def("method_names() -> str[]", method_names);
  m.def("model_names() -> str[]", model_names);
  m.def("option_fields(str kind) -> str", fields_json);
  m.def("model_options(str family, str options) -> str", model_options);
  m.def("model_of_settings(Dict(str, str) settings) -> (str, str)", model_of_settings);
  m.def(
      "start_vectors(int[] shape, str init, *, ScalarType? dtype=None, Device? device=None) "
      "-> Tensor",
      start_vectors_op);
  m.def(
      "attention_start(str options, Tensor? relation=None, int slots=0, int[] mirror=[], *, "
      "ScalarType? dtype=None, Device? device=None) -> Dict(str, Tensor)",
      attention_start);
  m.def(
      "attention_layout(str options, Tensor? relation=None, int slots=0, int[] mirror=[]) "
      "-> (str, str, int, bool, Dict(str, Tensor))",
      layout_op);
  m.def(
      "attention_layer(Tensor x, str names, Tensor[] weights, str method, int heads, str pairs, "
      "int tokens, bool shorter=False, Tensor? angles=None, Tensor? position_features=None, "
      "int[] rows=[], float dropout=0., str mixing='sum', bool map=False, int workspace=0, "
      "str precision='float32', Tensor? mask=None, int[] grid=[], int[] largest_grid=[], "
      "int dim=0) -> (Tensor, Tensor)",
      layer_op);
  m.def(
      "point_attention(Tensor x, str names, Tensor[] weights, Tensor[] pairs, int heads, "
      "int dim_head, str mixing='sum', float dropout=0., str precision='float32') -> Tensor",
      points_op);
}
TORCH_LIBRARY_IMPL(translution, FuncTorchBatched, m) {  // vmap of a layer is vmap of its parts
  m.impl("attention_layer", layer_op);
}

}  // namespace translution
