#include "translution/nn/regrid.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "translution/core/error.h"
#include "translution/nn/attention.h"

namespace translution {

using namespace detail;

namespace {

using Coordinates = std::vector<int64_t>;

// Rows with coordinates, and the class token's rows, which have none, before or after them.
struct Lattice {
  std::vector<Coordinates> points;  // of rows [first, first + points.size())
  int64_t first, rows;
};

Lattice offset_lattice(const OffsetTable& table) {
  Lattice lattice{{}, 0, table.num_slots()};
  for (int64_t slot = 0; slot < table.num_slots(); ++slot)
    if (auto offset = table.offset(slot)) lattice.points.push_back(*offset);
  return lattice;
}

Lattice position_lattice(const OffsetOptions& options) {
  Lattice lattice{{}, options.cls ? 1 : 0, count_tokens(options)};
  Coordinates position(options.grid.size(), 0);
  while (static_cast<int64_t>(lattice.points.size()) < lattice.rows - lattice.first) {
    lattice.points.push_back(position);
    for (size_t axis = position.size(); axis-- > 0;) {
      if (++position[axis] < options.grid[axis]) break;
      position[axis] = 0;
    }
  }
  return lattice;
}

int64_t squared_distance(const Coordinates& a, const Coordinates& b) {
  int64_t sum = 0;
  for (size_t axis = 0; axis < a.size(); ++axis) sum += (a[axis] - b[axis]) * (a[axis] - b[axis]);
  return sum;
}

// Sides of the box that the points fill in row-major order; throws if they do not fill a box.
std::vector<int64_t> box_sides(const Lattice& lattice) {
  const Coordinates &low = lattice.points.front(), &high = lattice.points.back();
  std::vector<int64_t> sides;
  int64_t count = 1;
  for (size_t axis = 0; axis < low.size(); ++axis) {
    sides.push_back(high[axis] - low[axis] + 1);
    count *= std::max<int64_t>(sides.back(), 0);
  }
  require(sides.size() <= 2 && count == static_cast<int64_t>(lattice.points.size()),
          "regrid: bicubic filling needs a full grid of 1 or 2 dimensions with an offset each; "
          "use nearest");
  if (sides.size() == 1) sides.insert(sides.begin(), 1);
  return sides;
}

// The rows of `table` that have coordinates, interpolated over the new lattice corner to corner.
at::Tensor stretch(const at::Tensor& table, const Lattice& from, const Lattice& to) {
  const auto old_sides = box_sides(from), new_sides = box_sides(to);
  const auto rows = table.narrow(0, from.first, static_cast<int64_t>(from.points.size()));
  const auto image = rows.reshape({old_sides[0], old_sides[1], -1}).permute({2, 0, 1});
  const auto stretched =
      at::upsample_bicubic2d(image.unsqueeze(0), new_sides, /*align_corners=*/true)[0];
  auto shape = table.sizes().vec();
  shape[0] = static_cast<int64_t>(to.points.size());
  return stretched.permute({1, 2, 0}).reshape(shape);
}

at::Tensor regrid(const at::Tensor& table, const Lattice& from, const Lattice& to, Fill fill,
                  RegridNote* note) {
  const std::string name = note && !note->name.empty() ? note->name : "the tensor";
  require(table.defined() && table.dim() > 0, "regrid: ", name, " must have ", from.rows,
          " rows, got ", table.defined() ? "a single number" : "nothing");
  require(table.size(0) == from.rows, "regrid: ", name, " has ", table.size(0),
          " rows, the source grid has ", from.rows);
  require(!from.points.empty() && from.points[0].size() == to.points[0].size() &&
              from.rows - from.points.size() == to.rows - to.points.size(),
          "regrid: the grids must have the same number of dimensions, and both or neither a class "
          "token");
  std::map<Coordinates, int64_t> old_row;
  for (size_t p = 0; p < from.points.size(); ++p) old_row[from.points[p]] = from.first + p;
  std::vector<int64_t> source(to.rows), filled;
  for (int64_t row = 0; row < to.rows; ++row) {
    const int64_t p = row - to.first;
    if (p < 0 || p >= static_cast<int64_t>(to.points.size())) {  // a class-token row
      source[row] = p < 0 ? row : row - to.rows + from.rows;
      continue;
    }
    const auto found = old_row.find(to.points[p]);
    if (found != old_row.end()) {
      source[row] = found->second;
      continue;
    }
    filled.push_back(row);
    const auto nearest = std::min_element(
        from.points.begin(), from.points.end(), [&](const Coordinates& a, const Coordinates& b) {
          return squared_distance(a, to.points[p]) < squared_distance(b, to.points[p]);
        });
    source[row] = from.first + (nearest - from.points.begin());
  }
  const auto index = [&](const std::vector<int64_t>& rows) {
    return at::tensor(rows, at::kLong).to(table.device());
  };
  auto result = table.index_select(0, index(source));
  if (fill == Fill::bicubic && !filled.empty()) {
    const auto rows = index(filled);
    result.index_copy_(0, rows, stretch(table, from, to).index_select(0, rows - to.first));
  }
  if (note) {
    const auto count = static_cast<int64_t>(filled.size());
    *note = {note->name, from.rows, to.rows, to.rows - count, count};
  }
  return result;
}

std::string describe(const OffsetOptions& o) {
  return join(times(o.grid), o.cls ? " with class token" : "", o.causal ? " causal" : "",
              o.sharing == Sharing::none ? "" : join(" sharing beyond ", o.radius));
}

void check_same_kind(const OffsetOptions& from, const OffsetOptions& to) {
  require(!from.grid.empty() && !to.grid.empty() && from.encoding == Encoding::relative &&
              to.encoding == Encoding::relative,
          "regrid: only rows per offset can move to another grid, not those of an absolute table "
          "or a relation");
  require(from.grid.size() == to.grid.size() && from.cls == to.cls && from.causal == to.causal &&
              from.sharing == to.sharing && from.radius == to.radius,
          "regrid: the tables may differ only in the sides of their grids, got ", describe(from),
          " and ", describe(to));
}

// The attention layers of a model by the prefix of their parameters' names.
std::vector<std::pair<std::string, const AttentionImpl*>> attention_layers(
    torch::nn::Module& model) {
  std::vector<std::pair<std::string, const AttentionImpl*>> layers;
  for (const auto& item : model.named_modules(/*name_prefix=*/"", /*include_self=*/true))
    if (const auto* layer = item.value()->as<AttentionImpl>())
      layers.emplace_back(item.key().empty() ? "" : item.key() + ".", layer);
  return layers;
}

// The rows that layers with a part of the slots have, by parameter.
std::map<std::string, TableRows> find_parts(torch::nn::Module& model) {
  std::map<std::string, TableRows> parts;
  for (const auto& [prefix, layer] : attention_layers(model))
    for (auto& [name, table] : layer->table_rows()) parts.emplace(prefix + name, std::move(table));
  return parts;
}

at::Tensor own_rows(const at::Tensor& whole, const TableRows& table) {
  if (whole.dim() == 0 || whole.size(0) != table.all) return whole;
  return whole.index_select(0, at::tensor(table.rows, at::kLong).to(whole.device()));
}

using Move = std::function<at::Tensor(const at::Tensor&, RegridNote*)>;

// For every parameter with rows per offset or position, the function that moves it from
// `saved_grid`.
std::map<std::string, Move> find_moves(torch::nn::Module& model,
                                       const std::vector<int64_t>& saved_grid, Fill fill) {
  std::map<std::string, Move> moves;
  for (const auto& [prefix, layer] : attention_layers(model)) {
    OffsetOptions positions{layer->options.grid(), layer->options.cls(), layer->options.causal()};
    OffsetOptions saved_positions = positions;
    saved_positions.grid = saved_grid;
    moves["position_embedding"] = [=](const at::Tensor& t, RegridNote* note) {
      return regrid_places(t, saved_positions, positions, fill, note);
    };
    if (!layer->offsets()) continue;
    auto saved_options = layer->offsets()->options();
    check_same_kind(saved_options, saved_options);
    saved_options.grid = saved_grid;
    const auto to = layer->offsets();
    const auto from = std::make_shared<const OffsetTable>(saved_options);
    for (const auto& spec : attention_parameters(layer->options))
      if (spec.per_slot)
        moves[prefix + spec.name] = [=](const at::Tensor& t, RegridNote* note) {
          return regrid_offsets(t, *from, *to, fill, note);
        };
  }
  return moves;
}

void check_names(const torch::OrderedDict<std::string, at::Tensor>& parameters,
                 const NamedTensors& tensors) {
  for (const auto& parameter : parameters)
    require(tensors.count(parameter.key()) == 1, "load: ", parameter.key(), " ",
            join(parameter.value().sizes()), " is missing; expected tensors of the same model");
  for (const auto& [name, tensor] : tensors) {
    if (!parameters.contains(name))
      throw std::invalid_argument(join("load: the model has no parameter '", name, "'",
                                       name_hint(name, parameters.keys())));
    require(tensor.defined() && !tensor.is_meta() && tensor.is_floating_point(), "load: ", name,
            " must hold floating-point numbers, got ",
            !tensor.defined()  ? "nothing"
            : tensor.is_meta() ? "a meta tensor without data"
                               : c10::toString(tensor.scalar_type()));
  }
}

}  // namespace

std::string RegridNote::str(Fill fill) const {
  return join(name, ": ", old_rows, " -> ", new_rows, " rows, ", kept, " kept, ", filled,
              fill == Fill::nearest ? " filled from the nearest" : " filled bicubically");
}

at::Tensor regrid_offsets(const at::Tensor& table, const OffsetTable& from, const OffsetTable& to,
                          Fill fill, RegridNote* note) {
  check_same_kind(from.options(), to.options());
  return regrid(table, offset_lattice(from), offset_lattice(to), fill, note);
}

at::Tensor regrid_places(const at::Tensor& rows, const OffsetOptions& from, const OffsetOptions& to,
                         Fill fill, RegridNote* note) {
  return regrid(rows, position_lattice(from), position_lattice(to), fill, note);
}

std::vector<RegridNote> load_tensors(torch::nn::Module& model, const NamedTensors& tensors,
                                     const std::vector<int64_t>& saved_grid, Fill fill) {
  const auto parameters = model.named_parameters();
  check_names(parameters, tensors);
  const auto layers = attention_layers(model);
  require(!layers.empty() || saved_grid.empty(),
          "load: the module has no attention layer, so its grid is unknown");
  std::map<std::string, Move> moves;
  if (!layers.empty() && layers.front().second->options.grid() != saved_grid)
    moves = find_moves(model, saved_grid, fill);
  const auto parts = find_parts(model);
  std::vector<RegridNote> notes;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (const auto& parameter : parameters) {
    auto tensor = tensors.at(parameter.key());
    if (const auto move = moves.find(parameter.key()); move != moves.end()) {
      RegridNote note{parameter.key(), 0, 0, 0, 0};
      tensor = move->second(tensor, &note);
      notes.push_back(note);
    }
    if (const auto part = parts.find(parameter.key()); part != parts.end())
      tensor = own_rows(tensor, part->second);
    require(tensor.sizes() == parameter.value().sizes(), "load: ", parameter.key(), " is ",
            tensor.sizes(), ", the model has ", parameter.value().sizes());
    copies.emplace_back(parameter.value(), tensor);
  }
  torch::NoGradGuard no_grad;
  for (auto& [target, tensor] : copies) target.copy_(tensor);
  return notes;
}

}  // namespace translution
