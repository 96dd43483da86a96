#include <torch/nn.h>

#include <cmath>

#include "tests/bad_input/wrong_calls.h"
#include "translution/nn/attention.h"
#include "translution/nn/block.h"
#include "translution/nn/regrid.h"

namespace translution {
namespace {

AttentionOptions tiny() { return AttentionOptions(6).heads(3).dim_head(4).grid({2, 3}).cls(true); }

Position of(Method method) {
  Position position;
  position.method = method;
  return position;
}

std::shared_ptr<const OffsetTable> any_relation() {
  return std::make_shared<const OffsetTable>(OffsetTable::from_relation({0, 0, 0, 0}, 2, 1));
}

std::function<void()> building(const AttentionOptions& options) {
  return [options] { Attention layer(options); };
}

// Calls a layer made for 7 tokens of 6 channels.
std::function<void()> calling(const at::Tensor& x, const at::Tensor& rows = {}) {
  return [x, rows] { Attention(tiny())->forward(x, rows); };
}

// Calls a layer with a key padding mask.
std::function<void()> masking(Method method, const at::Tensor& mask) {
  return [method, mask] {
    AttendOptions call;
    call.key_padding_mask = mask;
    Attention(tiny().position(of(method)))->forward(torch::zeros({2, 7, 6}), call);
  };
}

// Calls a layer with x of `tokens` tokens on a smaller grid.
std::function<void()> gridding(const AttentionOptions& options, int64_t tokens,
                               const std::vector<int64_t>& grid) {
  return [options, tokens, grid] {
    AttendOptions call;
    call.grid = grid;
    Attention(options)->forward(torch::zeros({2, tokens, 6}), call);
  };
}

std::vector<WrongCall> wrong_options() {
  return {
      {"a layer of no channels", building(AttentionOptions(0).grid({3})),
       "attention: expected dim of 1 or more, got 0"},
      {"a layer of no heads", building(tiny().heads(0)),
       "attention: expected one or more heads, got 0"},
      {"a layer with a negative dim_head", building(tiny().dim_head(-4)),
       "attention: expected dim_head of 1 or more, got -4"},
      {"heads that do not divide the channels", building(AttentionOptions(6).heads(4).grid({3})),
       "attention: dim 6 does not divide into 4 heads; set dim_head, the channels per head"},
      {"a layer whose width overflows",
       building(tiny().heads(int64_t{1} << 40).dim_head(int64_t{1} << 40)),
       "attention: expected at most 1073741824 channels, got dim 6 and 1099511627776 heads of "
       "1099511627776"},
      {"a layer with a negative workspace", building(tiny().workspace(-1)),
       "attention: expected a workspace of 0 or more bytes, got -1"},
      {"a layer with a dropout of one", building(tiny().dropout(1.0)),
       "attention: expected a dropout probability in [0, 1), got 1"},
      {"a layer with a NaN dropout", building(tiny().dropout(std::nan(""))),
       "attention: expected a dropout probability in [0, 1), got nan"},
      {"a layer with a negative dropout", building(tiny().dropout(-0.5)),
       "attention: expected a dropout probability in [0, 1), got -0.5"},
      {"a layer without a grid", building(AttentionOptions(6)),
       "offsets: expected a grid of one or more sides, got none"},
      {"a layer with a zero-sized grid", building(tiny().grid({0, 3})),
       "offsets: expected a grid with sides of 1 or more, got 0x3"},
      {"a layer with a rotary head that does not split",
       building(tiny().dim_head(6).position(of(Method::rotary))),
       "rotary: a head of 6 channels does not split into pairs for 2 axes; expected a multiple of "
       "4"},
      {"a gate on a relation",
       building(tiny().position(of(Method::gated_position)).relation(any_relation())),
       "attention: gated_position needs the offsets of a grid, not a relation"},
      {"rotary on a relation",
       building(tiny().position(of(Method::rotary)).relation(any_relation())),
       "attention: rotary needs the coordinates of a grid, not a relation"},
      {"a bias on a convolution", building(tiny().qkv_bias(true).position(of(Method::convolution))),
       "attention: qkv_bias needs W^q, W^k, W^v, got convolution"},
      {"a layer with fewer slots than parts",
       building(AttentionOptions(6).grid({2}).share({{0, 4}})),
       "pairs: expected at most 3 parts, one slot each, got 4; use fewer processes for the slots"},
      {"a layer with a part beyond the last", building(tiny().share({{2, 2}})),
       "pairs: expected part=R/P with R from 0 to P - 1, got part=2/2"},
      {"a block without hidden channels", [] { Block(tiny(), 0, BlockStyle{}); },
       "block: expected dim and mlp_dim of 1 or more, got 6 and 0"},
      {"a block with a NaN dropout", [] { Block(tiny(), 8, BlockStyle{std::nan("")}); },
       "block: expected a dropout probability in [0, 1), got nan"},
      {"a block with a dropout of one", [] { Block(tiny(), 8, BlockStyle{1.0}); },
       "block: expected a dropout probability in [0, 1), got 1"},
  };
}

std::vector<WrongCall> wrong_inputs() {
  return {
      {"a layer called with nothing", calling({}), "attention: x [B, N, 6] is missing"},
      {"a layer called without a batch", calling(torch::zeros({7, 6})),
       "attention: x must be [B, N, 6], got [7, 6]"},
      {"a layer called with another number of channels", calling(torch::zeros({2, 7, 5})),
       "attention: x must be [B, N, 6], got [2, 7, 5]"},
      {"a layer called with too few tokens", calling(torch::zeros({2, 6, 6})),
       "attention: x has 6 tokens, this layer was built for 7"},
      {"a text layer called with too many tokens",
       [] {
         Attention(tiny().grid({4}).cls(false))->forward(torch::zeros({2, 5, 6}));
       },
       "attention: x has 5 tokens, this layer was built for 1 to 4"},
      {"a text layer called with no tokens",
       [] {
         Attention(tiny().grid({4}).cls(false))->forward(torch::zeros({2, 0, 6}));
       },
       "attention: x has 0 tokens, this layer was built for 1 to 4"},
      {"a layer called with a mask of integers",
       masking(Method::translution, torch::ones({2, 7}, torch::kLong)),
       "translution: the key padding mask must be bool, true for a token, got Long; convert it, "
       "such as mask != 0"},
      {"a layer called with a mask of fewer tokens",
       masking(Method::rotary, torch::ones({2, 6}, torch::kBool)),
       "self_attention: the key padding mask must be [2, 7], the batch and the tokens, got [2, 6]"},
      {"a convolution called with a mask of one sample",
       masking(Method::convolution, torch::ones({7}, torch::kBool)),
       "convolution: the key padding mask must be [2, 7], the batch and the tokens, got [7]"},
      {"a layer called on a larger grid", gridding(tiny(), 10, {3, 3}),
       "attention: expected a grid of at most 2x3, got 3x3; build the layer for the largest grid"},
      {"a layer called on a grid of one side", gridding(tiny(), 7, {6}),
       "attention: expected a grid of at most 2x3, got 6; build the layer for the largest grid"},
      {"a layer called on a negative grid", gridding(tiny(), 7, {-2, -3}),
       "attention: expected a grid of at most 2x3, got -2x-3; build the layer for the largest "
       "grid"},
      {"a layer called with other tokens than its grid", gridding(tiny(), 7, {2, 2}),
       "attention: x has 7 tokens, the grid 2x2 with class token has 5"},
      {"a layer on a relation called on a grid", gridding(tiny().relation(any_relation()), 2, {2}),
       "attention: got the grid 2, but this layer was built for a relation; leave out the grid"},
      {"a layer without a grid called on a grid",
       gridding(AttentionOptions(6).position(of(Method::self_attention)), 4, {2, 2}),
       "attention: got the grid 2x2, but this layer was built without a grid; leave out the grid"},
      {"a layer called with integers", calling(torch::zeros({2, 7, 6}, torch::kLong)),
       "translution: x must hold floating-point numbers, got Long; convert it"},
      {"a float layer called with doubles", calling(torch::zeros({2, 7, 6}, torch::kDouble)),
       "translution: q is Float but x is Double; convert one of them"},
      {"a layer called on another device", calling(torch::zeros({2, 7, 6}, torch::kMeta)),
       "translution: q is on cpu but x is on meta; move one of them"},
      {"a layer called with rows out of range",
       calling(torch::zeros({2, 7, 6}), torch::full({1}, 7, torch::kLong)),
       "translution: expected query rows from 0 to 6, got 7"},
      {"a layer called with float rows", calling(torch::zeros({2, 7, 6}), torch::zeros({1})),
       "attention: rows must be a vector of int64 token indices, got Float [1]"},
  };
}

NamedTensors tensors_of(const Attention& layer) {
  NamedTensors tensors;
  for (const auto& parameter : layer->named_parameters())
    tensors[parameter.key()] = parameter.value().detach();
  return tensors;
}

// Loads the tensors of a layer on a 2x3 grid, with one change, into a layer on 3x3.
template <typename Change>
std::function<void()> loading(Change change, std::vector<int64_t> saved_grid = {2, 3}) {
  return [change, saved_grid] {
    auto tensors = tensors_of(Attention(tiny()));
    change(tensors);
    load_tensors(*Attention(tiny().grid({3, 3})), tensors, saved_grid);
  };
}

std::vector<WrongCall> wrong_loads() {
  const auto nothing = [](auto&) {};
  const auto regrid = [](OffsetOptions from, OffsetOptions to, int64_t rows, Fill fill) {
    return [=] { regrid_offsets(at::zeros({rows, 2}), OffsetTable(from), OffsetTable(to), fill); };
  };
  return {
      {"loading with a missing tensor", loading([](auto& t) { t.erase("out.bias"); }),
       "load: out.bias [6] is missing; expected tensors of the same model"},
      {"loading an unknown tensor", loading([](auto& t) { t["kex"] = at::zeros({1}); }),
       "load: the model has no parameter 'kex'; did you mean 'key'?"},
      {"loading an undefined tensor", loading([](auto& t) { t["key"] = at::Tensor(); }),
       "load: key must hold floating-point numbers, got nothing"},
      {"loading integers", loading([](auto& t) { t["key"] = t["key"].to(at::kLong); }),
       "load: key must hold floating-point numbers, got Long"},
      {"loading a meta tensor", loading([](auto& t) { t["key"] = t["key"].to(at::kMeta); }),
       "load: key must hold floating-point numbers, got a meta tensor without data"},
      {"loading a tensor of another shape",
       loading([](auto& t) { t["out.bias"] = at::zeros({7}); }),
       "load: out.bias is [7], the model has [6]"},
      {"loading a table with other rows",
       loading([](auto& t) { t["key"] = t["key"].narrow(0, 0, 17); }),
       "regrid: key has 17 rows, the source grid has 18"},
      {"loading a scalar for a table", loading([](auto& t) { t["key"] = at::zeros({}); }),
       "regrid: key must have 18 rows, got a single number"},
      {"loading from another grid", loading(nothing, {2, 2}),
       "regrid: query has 18 rows, the source grid has 12"},
      {"loading from a grid of one side", loading(nothing, {6}),
       "regrid: the tables may differ only in the sides of their grids, got 6 with class token and "
       "3x3 with class token"},
      {"loading from a zero-sized grid", loading(nothing, {2, 0}),
       "offsets: expected a grid with sides of 1 or more, got 2x0"},
      {"loading from the model's own grid", loading(nothing, {3, 3}),
       "load: query is [18, 6, 12], the model has [28, 6, 12]"},
      {"loading into a module without attention",
       [] {
         load_tensors(*torch::nn::Linear(torch::nn::LinearOptions(2, 2).bias(false)),
                      {{"weight", at::zeros({2, 2})}}, {2});
       },
       "load: the module has no attention layer, so its grid is unknown"},
      {"loading an absolute layer from another grid",
       [] {
         auto position = of(Method::translution);
         position.encoding = Encoding::absolute;
         load_tensors(*Attention(tiny().grid({3, 3}).position(position)),
                      tensors_of(Attention(tiny().position(position))), {2, 3});
       },
       "regrid: only rows per offset can move to another grid, not those of an absolute table or a "
       "relation"},
      {"regridding to another dimension", regrid({{3}}, {{3, 3}}, 5, Fill::nearest),
       "regrid: the tables may differ only in the sides of their grids, got 3 and 3x3"},
      {"regridding away a class token", regrid({{3}, true}, {{4}}, 8, Fill::nearest),
       "regrid: the tables may differ only in the sides of their grids, got 3 with class token and "
       "4"},
      {"regridding a table with other rows", regrid({{3}}, {{4}}, 6, Fill::nearest),
       "regrid: the tensor has 6 rows, the source grid has 5"},
      {"regridding a volume bicubically", regrid({{2, 2, 2}}, {{3, 2, 2}}, 27, Fill::bicubic),
       "regrid: bicubic filling needs a full grid of 1 or 2 dimensions with an offset each; use "
       "nearest"},
      {"regridding causal images bicubically",
       regrid({{2, 2}, false, true}, {{3, 3}, false, true}, 5, Fill::bicubic),
       "regrid: bicubic filling needs a full grid of 1 or 2 dimensions with an offset each; use "
       "nearest"},
      {"regridding positions of another dimension",
       [] {
         regrid_places(at::zeros({4, 2}), {{4}}, {{2, 3}}, Fill::nearest);
       },
       "regrid: the grids must have the same number of dimensions, and both or neither a class "
       "token"},
  };
}

}  // namespace

std::vector<WrongCall> wrong_layer_calls() {
  std::vector<WrongCall> all;
  for (const auto& calls : {wrong_options(), wrong_inputs(), wrong_loads()})
    all.insert(all.end(), calls.begin(), calls.end());
  return all;
}

}  // namespace translution
