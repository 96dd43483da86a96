#include <cmath>

#include "apps/translution/paper/tables.h"
#include "tests/bad_input/wrong_calls.h"
#include "tests/models/tiny_models.h"
#include "translution/models/cost.h"

namespace translution {
namespace {

constexpr int64_t kHugeSize = std::numeric_limits<int64_t>::max();

std::function<void()> naming(const std::string& name) {
  return [name] { ModelOptions::named(name); };
}

// Checks the options of a tiny ViT with one change.
template <typename Change>
std::function<void()> checking(Change change) {
  return [change] {
    auto options = tiny_vit();
    change(options);
    options.check();
  };
}

std::function<void()> calling_vit(const at::Tensor& images) {
  return [images] { ViT(tiny_vit())->forward(images); };
}

std::function<void()> calling_gpt(const at::Tensor& tokens, const at::Tensor& rows = {}) {
  return [tokens, rows] { GPT(tiny_gpt())->forward(tokens, rows); };
}

at::Tensor tokens_up_to(int64_t last) { return torch::arange(last - 3, last + 1).view({2, 2}); }

std::vector<WrongCall> wrong_model_names() {
  return {
      {"an empty model name", naming(""),
       "unknown model ''; expected an architecture with a patch size or length after it, as in "
       "vit-a/12, gpt-a-160, or one for points, as in cloud-a"},
      {"a model name with a typing error", naming("vit-bsae/16"),
       "unknown model 'vit-bsae/16'; did you mean 'vit-base'? Append a patch size or length: "
       "vit-a/12, gpt-a-160"},
      {"a model name of an unknown family", naming("bert-a"),
       "unknown model 'bert-a'; expected an architecture with a patch size or length after it, "
       "as in vit-a/12, gpt-a-160, or one for points, as in cloud-a"},
      {"a model of points with a typing error", naming("clod-a"),
       "unknown model 'clod-a'; did you mean 'cloud-a'?"},
      {"a model of points with a size", naming("cloud-a-96"),
       "model 'cloud-a-96': expected cloud-a; clouds have any number of points"},
      {"a model name in capitals", naming("ViT-A/16"),
       "unknown model 'ViT-A/16'; did you mean 'vit-a'? Append a patch size or length: "
       "vit-a/12, gpt-a-160"},
      {"a model name without a patch size", naming("vit-a/"),
       "model 'vit-a/': expected a number from 1 to 999999 after the architecture, as in vit-a/12 "
       "or gpt-a-160, got ''"},
      {"a model name with a patch size of zero", naming("vit-a/0"),
       "model 'vit-a/0': expected a number from 1 to 999999 after the architecture, as in "
       "vit-a/12 "
       "or gpt-a-160, got '0'"},
      {"a model name with a negative length", naming("gpt-a--5"),
       "model 'gpt-a--5': expected a number from 1 to 999999 after the architecture, as in "
       "vit-a/12 "
       "or gpt-a-160, got '-5'"},
      {"a model name with a huge length", naming("gpt-a-99999999999999999999"),
       "model 'gpt-a-99999999999999999999': expected a number from 1 to 999999 after the "
       "architecture, as in vit-a/12 or gpt-a-160, got '99999999999999999999'"},
      {"a model name with letters for a size", naming("vit-a/12x"),
       "model 'vit-a/12x': expected a number from 1 to 999999 after the architecture, as in "
       "vit-a/12 or gpt-a-160, got '12x'"},
      {"a model name with the separator of the other family", naming("gpt-a/160"),
       "unknown model 'gpt-a/160'; did you mean 'gpt-a'? Append a patch size or length: "
       "vit-a/12, gpt-a-160"},
      {"an unknown table of the paper", [] { cli::paper_table("imagnet"); },
       "unknown table 'imagnet'; did you mean 'imagenet'?"},
  };
}

// Checks the options of a tiny cloud with one change.
template <typename Change>
std::function<void()> checking_cloud(Change change) {
  return [change] {
    auto options = tiny_cloud();
    change(options);
    options.check();
  };
}

// Calls a tiny cloud with one change to its input, of two clouds of three points.
template <typename Change>
std::function<void()> calling_cloud(Change change) {
  return [change] {
    auto x = torch::ones({2, 3, 2});
    Points points{torch::rand({2, 3, 2}), torch::ones({2, 3}, torch::kBool)};
    change(x, points);
    Cloud(tiny_cloud())->forward(x, points);
  };
}

std::vector<WrongCall> wrong_clouds() {
  return {
      {"a cloud of no axes", checking_cloud([](auto& o) { o.axes = 0; }),
       "model: expected axes of 1, 2 or 3, got 0"},
      {"a cloud of four axes", checking_cloud([](auto& o) { o.axes = 4; }),
       "model: expected axes of 1, 2 or 3, got 4"},
      {"points with a part of the slots", checking_cloud([](auto& o) {
         o.share.part = {0, 2};
       }),
       "model: expected images or text to split tables between processes, got points; use "
       "data-parallel training"},
      {"a lattice without a radius", checking_cloud([](auto& o) { o.position.radius = 0; }),
       "model: expected a radius of 1 to 64 lattice points to each side, got 0"},
      {"a huge lattice", checking_cloud([](auto& o) { o.position.radius = 65; }),
       "model: expected a radius of 1 to 64 lattice points to each side, got 65"},
      {"a spacing of zero", checking_cloud([](auto& o) { o.spacing = 0; }),
       "model: expected a positive spacing in the unit of the positions, got 0"},
      {"a NaN spacing", checking_cloud([](auto& o) { o.spacing = std::nan(""); }),
       "model: expected a positive spacing in the unit of the positions, got nan"},
      {"negative neighbours", checking_cloud([](auto& o) { o.neighbours = -1; }),
       "model: expected neighbours of 0 (all) or more, got -1"},
      {"a negative cutoff", checking_cloud([](auto& o) { o.cutoff = -0.5; }),
       "model: expected a cutoff of 0 (any) or more, got -0.5"},
      {"points with the sharing of a grid",
       checking_cloud([](auto& o) { o.position.sharing = Sharing::logarithmic; }),
       "model: points need sharing direction, which moves an offset beyond the lattice to its "
       "border, or window, which drops the pair; got logarithmic"},
      {"points with a method that needs a grid",
       checking_cloud([](auto& o) { o.position.method = Method::gated_position; }),
       "model: gated_position, rotary position and absolute encoding need a grid; points have "
       "none"},
      {"points with rotary position", checking_cloud([](auto& o) { o.rest = Method::rotary; }),
       "model: gated_position, rotary position and absolute encoding need a grid; points have "
       "none"},
      {"points with an absolute encoding",
       checking_cloud([](auto& o) { o.position.encoding = Encoding::absolute; }),
       "model: gated_position, rotary position and absolute encoding need a grid; points have "
       "none"},
      {"a number of no scale", checking_cloud([](auto& o) { o.target_scale = 0; }),
       "model: expected a finite target-mean and a positive target-scale, got 0 and 0"},
      {"points without features", checking_cloud([](auto& o) { o.channels = 0; }),
       "model: expected channels of 1 to 1073741824, got 0"},
      {"negative classes", checking_cloud([](auto& o) { o.classes = -1; }),
       "model: expected classes of 1 to 1073741824, got -1"},
      {"a Cloud of a vit", [] { Cloud model(tiny_vit()); },
       "Cloud: expected the options of a cloud, got those of a vit; name a cloud model, such as "
       "cloud-a"},
      {"a ViT of a cloud", [] { ViT model(tiny_cloud()); },
       "ViT: expected the options of a vit, got those of a cloud; build Cloud or name a vit model"},
      {"a Cloud without a spacing",
       [] {
         auto options = tiny_cloud();
         options.spacing.reset();
         Cloud model(options);
       },
       "Cloud: the spacing is missing; give it in the unit of the positions"},
      {"no features", calling_cloud([](auto& x, auto&) { x.reset(); }),
       "Cloud: the features are missing"},
      {"no positions", calling_cloud([](auto&, auto& p) { p.positions.reset(); }),
       "Cloud: the positions are missing"},
      {"features of packed points", calling_cloud([](auto& x, auto&) { x = x[0]; }),
       "Cloud: expected features [B, N, 2], got [3, 2]"},
      {"too many features", calling_cloud([](auto& x, auto&) {
         x = torch::ones({2, 3, 4});
       }),
       "Cloud: expected features [B, N, 2], got [2, 3, 4]"},
      {"features in double", calling_cloud([](auto& x, auto&) { x = x.to(torch::kDouble); }),
       "Cloud: the features are Double on cpu, the model is Float on cpu; convert or move one of "
       "them"},
      {"packed points", calling_cloud([](auto&, auto& p) { p.batch = torch::arange(2); }),
       "Cloud: expected padded clouds and no pairs; packed points and pairs are for the layer, "
       "PointAttention"},
      {"positions of three axes", calling_cloud([](auto&, auto& p) {
         p.positions = torch::rand({2, 3, 3});
       }),
       "points: x is [2, 3, 2] and positions are [2, 3, 3]; expected 2 coordinates for every "
       "token"},
      {"a mask of floats", calling_cloud([](auto&, auto& p) { p.mask = p.mask.to(torch::kFloat); }),
       "points: the mask must be bool, true for a token, got Float; convert it, such as mask != 0"},
      {"a cloud without points", calling_cloud([](auto&, auto& p) { p.mask[1].fill_(false); }),
       "Cloud: cloud 1 has no points; leave it out"},
      {"a NaN position", calling_cloud([](auto&, auto& p) { p.positions[1][2][0] = NAN; }),
       "point_pairs: the position of token 7 is not finite"},
  };
}

std::vector<WrongCall> wrong_sizes() {
  return {
      {"a model of no layers", checking([](auto& o) { o.architecture.depth = 0; }),
       "model: expected depth of 1 to 16384, got 0"},
      {"a model of no channels", checking([](auto& o) { o.architecture.dim = -1; }),
       "model: expected dim of 1 to 1073741824, got -1"},
      {"a model of no heads", checking([](auto& o) { o.architecture.heads = 0; }),
       "model: expected heads of 1 to 1073741824, got 0"},
      {"a model of overflowing heads", checking([](auto& o) { o.architecture.heads = kHugeSize; }),
       "model: expected heads of 1 to 1073741824, got 9223372036854775807"},
      {"a model without an MLP", checking([](auto& o) { o.architecture.mlp_dim = 0; }),
       "model: expected mlp_dim of 1 to 1073741824, got 0"},
      {"a model with a dropout of one", checking([](auto& o) { o.dropout = 1; }),
       "model: expected a dropout probability in [0, 1), got 1"},
      {"a model with a NaN dropout", checking([](auto& o) { o.dropout = std::nan(""); }),
       "model: expected a dropout probability in [0, 1), got nan"},
      {"a model with a negative dropout", checking([](auto& o) { o.dropout = -0.1; }),
       "model: expected a dropout probability in [0, 1), got -0.1"},
      {"more hybrid layers than layers", checking([](auto& o) { o.hybrid_layers = 3; }),
       "model: expected 0 to 2 hybrid layers (the depth), got 3"},
      {"negative hybrid layers", checking([](auto& o) { o.hybrid_layers = -1; }),
       "model: expected 0 to 2 hybrid layers (the depth), got -1"},
      {"a hybrid whose other layers use offsets",
       checking([](auto& o) { o.rest = Method::translution; }),
       "model: expected self_attention_no_pos or rotary for the rest of a hybrid, got translution"},
      {"an image of one side", checking([](auto& o) { o.image_size = {12}; }),
       "model: expected an image size of two sides, got 12"},
      {"an image that patches do not divide", checking([](auto& o) {
         o.image_size = {12, 10};
       }),
       "model: an image of 12x10 pixels does not divide into patches of 4x4"},
      {"an empty image", checking([](auto& o) {
         o.image_size = {0, 8};
       }),
       "model: an image of 0x8 pixels does not divide into patches of 4x4"},
      {"a patch of no pixels", checking([](auto& o) { o.patch_size = 0; }),
       "model: expected patch_size of 1 to 1073741824, got 0"},
      {"a patch whose values overflow", checking([](auto& o) {
         o.patch_size = int64_t{1} << 29;
         o.image_size = {o.patch_size, o.patch_size};
       }),
       "model: a patch of 2 channels and 536870912x536870912 pixels has more than 1073741824 "
       "values"},
      {"images without channels", checking([](auto& o) { o.channels = 0; }),
       "model: expected channels of 1 to 1073741824, got 0"},
      {"no classes", checking([](auto& o) { o.classes = 0; }),
       "model: expected classes of 1 to 1073741824, got 0"},
      {"too many patches", checking([](auto& o) {
         o.image_size = {4096, 4096};
       }),
       "offsets: expected at most 65535 tokens, got a grid of 1024x1024"},
      {"an invalid position", checking([](auto& o) { o.position.sharing = Sharing::window; }),
       "sharing: expected none, direction or logarithmic; window is for points and for "
       "convolution"},
      {"a text of no tokens",
       [] {
         auto options = tiny_gpt();
         options.length = 0;
         options.check();
       },
       "model: expected length of 1 to 1073741824, got 0"},
      {"an empty vocabulary",
       [] {
         auto options = tiny_gpt();
         options.vocabulary = 0;
         GPT model(options);
       },
       "model: expected vocabulary of 1 to 1073741824, got 0"},
      {"a ViT with the options of a GPT", [] { ViT model(tiny_gpt()); },
       "ViT: expected the options of a vit, got those of a gpt; build GPT or name a vit model"},
      {"a GPT with the options of a ViT", [] { GPT model(tiny_vit()); },
       "GPT: expected the options of a gpt, got those of a vit; build ViT or name a gpt model"},
      {"the cost of no samples", [] { model_cost(tiny_vit(), 0); },
       "model: expected a batch of 1 or more, got 0"},
      {"the cost of a number of parameters that overflows",
       [] {
         auto options = tiny_vit();
         options.architecture.dim = options.architecture.heads = int64_t{1} << 30;
         options.architecture.dim_head = 1;
         model_cost(options);
       },
       "parameter backbone.blocks.0.attention.query of shape 18x1073741824x1073741824 is too large "
       "to count"},
  };
}

std::vector<WrongCall> wrong_inputs() {
  return {
      {"a ViT called with nothing", calling_vit({}), "ViT: the images are missing"},
      {"a ViT called with one image", calling_vit(torch::zeros({2, 12, 8})),
       "ViT: expected images [B, 2, 12, 8], got [2, 12, 8]"},
      {"a ViT called with another number of channels", calling_vit(torch::zeros({1, 3, 12, 8})),
       "ViT: expected images [B, 2, 12, 8], got [1, 3, 12, 8]"},
      {"a ViT called with a transposed image", calling_vit(torch::zeros({1, 2, 8, 12})),
       "ViT: expected images [B, 2, 12, 8], got [1, 2, 8, 12]"},
      {"a ViT called with bytes", calling_vit(torch::zeros({1, 2, 12, 8}, torch::kByte)),
       "ViT: the images are Byte on cpu, the model is Float on cpu; convert or move one of them"},
      {"a ViT called with doubles", calling_vit(torch::zeros({1, 2, 12, 8}, torch::kDouble)),
       "ViT: the images are Double on cpu, the model is Float on cpu; convert or move one of them"},
      {"a ViT called on another device", calling_vit(torch::zeros({1, 2, 12, 8}, torch::kMeta)),
       "ViT: the images are Float on meta, the model is Float on cpu; convert or move one of them"},
      {"a GPT called with nothing", calling_gpt({}), "GPT: the tokens are missing"},
      {"a GPT called with one sequence", calling_gpt(torch::zeros({5}, torch::kLong)),
       "GPT: expected int64 tokens [B, n], got Long [5]"},
      {"a GPT called with floats", calling_gpt(torch::zeros({2, 5})),
       "GPT: expected int64 tokens [B, n], got Float [2, 5]"},
      {"a GPT called with int32", calling_gpt(torch::zeros({2, 5}, torch::kInt)),
       "GPT: expected int64 tokens [B, n], got Int [2, 5]"},
      {"a GPT called with no tokens", calling_gpt(torch::zeros({2, 0}, torch::kLong)),
       "GPT: expected 1 to 7 tokens, got 0"},
      {"a GPT called with too many tokens", calling_gpt(torch::zeros({2, 8}, torch::kLong)),
       "GPT: expected 1 to 7 tokens, got 8"},
      {"a GPT called with a token beyond the vocabulary", calling_gpt(tokens_up_to(11)),
       "GPT: expected tokens from 0 to 10, got 8 to 11"},
      {"a GPT called with a negative token", calling_gpt(tokens_up_to(2)),
       "GPT: expected tokens from 0 to 10, got -1 to 2"},
      {"a GPT called on another device",
       calling_gpt(torch::zeros({2, 5}, torch::dtype(torch::kLong).device(torch::kMeta))),
       "GPT: the tokens are on meta, the model is on cpu; move one of them"},
      {"a GPT called with rows out of range",
       calling_gpt(tokens_up_to(6), torch::full({1}, 2, torch::kLong)),
       "translution: expected query rows from 0 to 1, got 2"},
      {"the attention maps of an image of the wrong size",
       [] {
         ViT(tiny_vit())->attention_maps(torch::zeros({1, 2, 12, 12}));
       },
       "ViT: expected images [B, 2, 12, 8], got [1, 2, 12, 12]"},
  };
}

}  // namespace

std::vector<WrongCall> wrong_model_calls() {
  std::vector<WrongCall> all;
  for (const auto& calls : {wrong_model_names(), wrong_sizes(), wrong_clouds(), wrong_inputs()})
    all.insert(all.end(), calls.begin(), calls.end());
  return all;
}

}  // namespace translution
