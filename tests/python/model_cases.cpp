// model_cases DIR: writes small models with their weights, inputs, outputs and gradients, one
// safetensors file each, for the tests of the Python package to compare with.

#include <iostream>

#include "translution/io/safetensors.h"
#include "translution/models/network.h"
#include "translution/models/options_json.h"

namespace translution {
namespace {

struct Case {
  std::string name;
  ModelOptions options;
};

ModelOptions tiny(Family family, Method method) {
  auto o = ModelOptions::of_family(family);
  o.architecture = {"tiny", 2, 10, 2, 14, 8};
  o.image_size = {12, 8};
  o.patch_size = 4;
  o.channels = 2;
  o.classes = 5;
  o.length = 7;
  o.vocabulary = 11;
  o.axes = 2;
  if (family == Family::cloud) o.spacing = 0.5;
  o.position.method = method;
  o.position.relative_dim = 3;
  return o;
}

void add_variants(Family family, const std::string& prefix, std::vector<Case>& cases) {
  const auto add = [&](const char* name, Method method, auto change) {
    auto options = tiny(family, method);
    change(options);
    cases.push_back({prefix + name, options});
  };
  add("hybrid", Method::translution, [](ModelOptions& o) {
    o.hybrid_layers = 1;
    o.rest = Method::rotary;
  });
  add("embedded", Method::alpha_translution, [](ModelOptions& o) {
    o.input_embedding = true;
    o.position.mixing = Mixing::mean;
  });
  add("roles", Method::translution, [](ModelOptions& o) {
    o.position.roles = Roles::parse("v");
    o.position.rotary = true;
  });
  add("authors", Method::self_attention, [](ModelOptions& o) { o.init = Init::authors; });
  add("bf16", Method::translution, [](ModelOptions& o) {
    o.hybrid_layers = 1;
    o.precision = Precision::bf16;
  });
  if (family == Family::vit)
    add("mean", Method::translution, [](ModelOptions& o) { o.pooling = Pooling::mean; });
}

bool works_on_points(Method method) {
  return method != Method::gated_position && method != Method::rotary;
}

void add_clouds(std::vector<Case>& cases) {
  for (const auto& method : kMethods)
    if (works_on_points(method.value))
      cases.push_back({std::string("cloud_") + method.name, tiny(Family::cloud, method.value)});
  auto mean = tiny(Family::cloud, Method::translution);
  mean.pooling = Pooling::mean, mean.neighbours = 3, mean.learn_spacing = true;
  mean.input_embedding = true, mean.coordinates = Coordinates::centred;
  cases.push_back({"cloud_mean", mean});
  auto number = tiny(Family::cloud, Method::alpha_translution);
  number.classes = 0, number.axes = 3, number.distances = true;
  cases.push_back({"cloud_number", number});
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& [family, prefix] :
       {std::pair{Family::vit, std::string("vit_")}, std::pair{Family::gpt, std::string("gpt_")}}) {
    for (const auto& method : kMethods)
      cases.push_back({prefix + method.name, tiny(family, method.value)});
    add_variants(family, prefix, cases);
  }
  add_clouds(cases);
  return cases;
}

// Two clouds, of which the second has two points less.
Points make_points(const ModelOptions& o) {
  if (o.family != Family::cloud) return {};
  const auto mask = torch::arange(6) < torch::tensor({6, 4}).unsqueeze(1);
  return {torch::randn({2, 6, o.axes}), mask};
}

torch::Tensor make_input(const ModelOptions& o) {
  if (o.family == Family::cloud) return torch::randn({2, 6, o.channels});
  if (o.family == Family::gpt) return torch::randint(o.vocabulary, {2, o.length}, torch::kLong);
  return torch::randn({2, o.channels, o.image_size[0], o.image_size[1]});
}

void write_case(const std::string& directory, const Case& c) {
  torch::manual_seed(5);
  Network network(c.options);
  const auto input = make_input(c.options);
  const auto points = make_points(c.options);
  const auto output = network.forward(input, {}, points);
  const auto d_output = torch::randn_like(output);
  output.backward(d_output);
  NamedTensors tensors = {{"input", input}, {"output", output.detach()}, {"grad_output", d_output}};
  if (points.positions.defined())
    tensors["positions"] = points.positions, tensors["mask"] = points.mask;
  for (const auto& parameter : network.module().named_parameters()) {
    tensors["weight." + parameter.key()] = parameter.value().detach();
    const auto& gradient = parameter.value().grad();
    if (gradient.defined()) tensors["grad." + parameter.key()] = gradient;
  }
  save_safetensors(
      directory + "/" + c.name + ".safetensors", tensors,
      {{"family", name_of(kFamilies, c.options.family)}, {"plan", to_json(c.options)}});
}

}  // namespace
}  // namespace translution

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: model_cases DIR\n";
    return 2;
  }
  for (const auto& c : translution::all_cases()) translution::write_case(argv[1], c);
}
