#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/translution/paper/tables.h"
#include "commands.h"
#include "json_text.h"
#include "model_flags.h"
#include "table.h"
#include "translution/models/cost.h"
#include "translution/train/parallel.h"

namespace translution::cli {

using namespace detail;

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kBatch = 1, kMostShards = 1 << 16;
constexpr const char* kInfoExamples =
    "FLOPs are per sample. Memory in training is that of one step with --batch samples; with\n"
    "--shards, --ranks or --parallel, also that of each process.\n"
    "--paper-table prints all rows of a table of the paper, with our count of parameters beside\n"
    "the printed one, and takes no other option but --json.\n"
    "\n"
    "Examples:\n"
    "  translution info --model vit-a/12 --method translution --image-size 84 --channels 1 \\\n"
    "                   --classes 10\n"
    "  translution info --model gpt-a-160 --method alpha_translution --relative-dim 16 --batch 8\n"
    "  translution info --model vit-a/12 --method translution --batch 64 --shards 8 --ranks 2\n"
    "  translution info --model vit-c/16 --method translution --batch 256 --offload\n"
    "  translution info --model vit-c/16 --method translution --batch 64 --parallel offset=4\n"
    "  translution info --paper-table imagenet";

struct InfoFlags {
  explicit InfoFlags(Command command) : model(command), precision(command, "float32") {
    table =
        command.option("--paper-table", "TABLE",
                       "table of the paper, instead of a model; see `translution list`", "Model");
    command.require_one_of({model.model(), table});
    batch = command.option("--batch", "N", fmt::format("samples per batch ({})", kBatch));
    shards = command.option("--shards", "N", "shards of a batch, as in train (one per process)");
    ranks = command.option("--ranks", "N", "processes that share the training (1)");
    parallel = command.option("--parallel", "data=D,offset=P",
                              "how they share it, as in train (data=RANKS,offset=1)");
    offload = command.flag("--offload", of_offload,
                           "also print memory and files of a training with --offload");
    accumulate =
        command.option("--accumulate", "N", "parts of the batch in a training with --offload (1)");
    command.flag("--json", json, "print JSON");
  }

  ModelFlags model;
  PrecisionFlag precision;
  Option table;
  Option batch, shards, ranks, parallel, offload, accumulate;
  bool of_offload = false;
  bool json = false;
};

// A training step as users describe it.
struct Step {
  int64_t batch = kBatch, shards = 1;
  Parallel parallel = {1, 1};
  std::optional<int64_t> parts = {};  // that --offload splits the batch into; empty without it

  int64_t ranks() const { return parallel.data * parallel.offset; }
  bool is_shared() const { return shards > 1 || ranks() > 1; }
  int64_t shard() const { return (batch + shards - 1) / shards; }  // samples
};

// The ranks are given by --ranks, by --parallel, or by both.
Parallel parallel_of(const InfoFlags& flags) {
  Parallel parallel;
  if (flags.parallel.given()) parallel = parse_parallel(value_of(flags.parallel));
  const int64_t given = std::max<int64_t>(parallel.data, 1) * parallel.offset;
  return parallel.of(number_or(given, flags.ranks, kMostShards));
}

Step step_of(const InfoFlags& flags) {
  Step step;
  if (flags.batch.given()) step.batch = value_of(flags.batch).number();
  step.parallel = parallel_of(flags);
  const int64_t groups = step.parallel.data;
  step.shards = number_or(groups, flags.shards, kMostShards);
  require(step.shards % groups == 0, step.parallel.offset > 1 ? "--parallel" : "--ranks",
          ": expected a divisor of the ", step.shards, " shards, got ", groups);
  require(step.shards <= std::max<int64_t>(step.batch, 1) || !step.is_shared(),
          "--batch: expected at least the ", step.shards, " shards, got ", step.batch);
  require(flags.of_offload || !flags.accumulate.given(), "--accumulate is for --offload");
  require(!flags.of_offload || !step.is_shared(), "--offload is for one process without --shards");
  if (flags.of_offload) step.parts = number_or(1, flags.accumulate, step.batch);
  return step;
}

// Bytes of one process in training.
double rank_bytes(const ModelOptions& model, const Step& step) {
  auto owned = model;
  owned.share = step.parallel.share(0);  // no rank has more slots
  const auto cost = model_cost(owned, step.shard());
  return cost.training_bytes +
         sharing_bytes(cost, {step.shards / step.parallel.data, step.ranks(), 1});
}

double offload_bytes(const ModelOptions& model, const Step& step) {
  return translution::offload_bytes(model, step.batch,
                                    (step.batch + *step.parts - 1) / *step.parts);
}

double file_bytes(const ModelOptions& model) { return 3 * model_cost(model).weight_bytes; }

int64_t count(const std::vector<ParameterSpec>& specs, bool per_slot) {
  int64_t total = 0;
  for (const auto& spec : specs)
    if (spec.per_slot == per_slot) total += spec.count();
  return total;
}

std::vector<int64_t> slots_per_layer(const ModelOptions& model) {
  std::vector<int64_t> result;
  for (int64_t layer = 0; layer < model.architecture.depth; ++layer) {
    const auto o = model.table_options(layer);
    const auto offsets = o.position().offsets(o.grid(), o.cls(), o.causal());
    result.push_back(o.position().uses_offsets() ? count_slots(offsets) : 0);
  }
  return result;
}

// ------------------------------------------------------------------------------------- JSON

// The options in which models of the same name and method can differ, where they apply.
Json distinguishing_options(const ModelOptions& model) {
  const Position& p = model.position;
  Json options;
  if (p.uses_offsets()) options["encoding"] = name_of(kEncodings, p.encoding);
  if (p.method == Method::alpha_translution) {
    options["relative_dim"] = p.relative_dim;
    options["shared_qkv"] = p.shared_qkv;
  }
  options["input_embedding"] = model.embeds_input();
  return options;
}

template <typename Figure>
Json or_null(const std::optional<Figure>& value) {
  return value ? Json(*value) : Json();
}

Json row_json(const PaperRow& row) {
  const int64_t parameters = model_cost(row.model).parameters;
  Json json = {{"model", row.model.name()},
               {"method", name_of(kMethods, row.model.position.method)}};
  json.update(distinguishing_options(row.model));
  json["parameters"] = parameters;
  json["params_paper_millions"] =
      row.printed_millions ? Json(std::stod(*row.printed_millions)) : Json();
  json["agrees"] = or_null(row.agrees(parameters));
  json["out_of_memory"] = row.out_of_memory;
  json["results"] = Json::object();
  for (const auto& [metric, value] : row.results) json["results"][metric] = or_null(value);
  return json;
}

// A count without ".0" if it fits into an integer.
Json integer(double value) {
  return value < 9e18 ? Json(static_cast<int64_t>(value)) : Json(value);
}

Json model_json(const ModelOptions& model, const Step& step) {
  const auto cost = model_cost(model, step.batch);
  const auto specs = model_parameters(model);
  Json json = row_json({model, std::nullopt, std::nullopt, {}, false});
  json["table_parameters"] = count(specs, /*per_slot=*/true);
  json["other_parameters"] = count(specs, /*per_slot=*/false);
  json["forward_flops"] = integer(cost.forward_flops);
  json["training_flops"] = integer(cost.training_flops);
  json["precision"] = name_of(kPrecisions, model.precision);
  json["weight_bytes"] = integer(cost.weight_bytes);
  json["packed_bytes"] = integer(cost.packed_bytes);
  json["kept_bytes"] = integer(cost.kept_bytes);
  json["evaluation_bytes"] = integer(cost.evaluation_bytes);
  json["training_bytes"] = integer(cost.training_bytes);
  json["accumulator_bytes"] = integer(cost.accumulator_bytes);
  if (step.is_shared()) {
    json["shards"] = step.shards;
    json["ranks"] = step.ranks();
    json["parallel"] = step.parallel.text();
    json["rank_bytes"] = integer(rank_bytes(model, step));
  }
  if (step.parts) {
    json["offload_bytes"] = integer(offload_bytes(model, step));
    json["offload_file_bytes"] = integer(file_bytes(model));
    json["accumulate"] = *step.parts;
  }
  json["batch"] = step.batch;
  json["tokens"] = model.tokens();
  json["slots_per_layer"] = slots_per_layer(model);
  return json;
}

// ------------------------------------------------------------------------------------- text

std::string token_remark(const ModelOptions& model) {
  if (model.family == Family::gpt) return "";
  const auto tokens = model.family == Family::cloud ? grouped(model.points) + " points"
                                                    : times(model.grid()) + " patches";
  return tokens + (model.has_cls() ? " and a class token" : "");
}

std::string slot_remark(const std::vector<int64_t>& slots) {
  const auto plain = std::count(slots.begin(), slots.end(), 0);
  if (plain == 0 || slots.front() == 0) return "";
  return fmt::format("in {} of {} layers", slots.size() - plain, slots.size());
}

std::string rank_remark(const ModelOptions& model, const Step& step) {
  auto remark = fmt::format("{}, {} of {} shards of {}", in_bytes(rank_bytes(model, step)),
                            step.shards / step.parallel.data, step.shards,
                            step.shard() == 1 ? "1 sample" : join(step.shard(), " samples"));
  if (step.parallel.offset > 1) remark += fmt::format(", 1/{} of the tables", step.parallel.offset);
  return remark;
}

std::string model_text(const ModelOptions& model, const Step& step) {
  const int64_t batch = step.batch;
  const auto cost = model_cost(model, batch);
  const auto specs = model_parameters(model);
  const auto slots = slots_per_layer(model);
  Table table({{}, {"", Align::right}, {}});
  table.add({"parameters", grouped(cost.parameters)});
  table.add({"  attention tables", grouped(count(specs, /*per_slot=*/true))});
  table.add({"  other", grouped(count(specs, /*per_slot=*/false))});
  table.add({"tokens", grouped(model.tokens()), token_remark(model)});
  table.add({"slots per layer", grouped(slots.front()), slot_remark(slots)});
  table.add({"FLOPs per sample"});
  table.add({"  forward", grouped(cost.forward_flops), in_flops(cost.forward_flops)});
  table.add({"  training", grouped(cost.training_flops), in_flops(cost.training_flops)});
  table.add({"bytes"});
  table.add({"  weights", grouped(cost.weight_bytes), in_bytes(cost.weight_bytes)});
  const auto at_batch = [&](double bytes) {
    return fmt::format("{} at batch {}", in_bytes(bytes), batch);
  };
  if (model.precision == Precision::bf16) {
    table.add({"  evaluation", grouped(cost.evaluation_bytes),
               at_batch(cost.evaluation_bytes) + ", 2 per weight of a matrix"});
    table.add({"  packed copies", grouped(cost.packed_bytes),
               in_bytes(cost.packed_bytes) + " in training, bfloat16 in both orientations"});
    table.add({"  kept encodings", grouped(cost.kept_bytes),
               at_batch(cost.kept_bytes) + ", 2 per number"});
  }
  table.add({"  training", grouped(cost.training_bytes), at_batch(cost.training_bytes)});
  if (step.is_shared())
    table.add({step.ranks() > 1 ? fmt::format("  each of {} ranks", step.ranks()) : "  in shards",
               grouped(rank_bytes(model, step)), rank_remark(model, step)});
  if (step.parts) {
    const double offload = offload_bytes(model, step), files = file_bytes(model);
    const auto parts = *step.parts > 1 ? fmt::format(" in {} parts", *step.parts) : "";
    table.add({"  training with --offload", grouped(offload), at_batch(offload) + parts});
    table.add(
        {"  files of --offload", grouped(files), in_bytes(files) + ", as is each checkpoint"});
  }
  return fmt::format("{} with {}{}\n\n{}", model.name(), name_of(kMethods, model.position.method),
                     model.precision == Precision::bf16 ? " in bf16" : "", table.str());
}

std::string cell(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The options in which rows of the same model and method differ.
std::vector<std::string> differing_options(const PaperTable& table) {
  std::map<std::pair<std::string, Method>, Json> seen;
  std::set<std::string> differing;
  for (const auto& row : table.rows) {
    const Json options = distinguishing_options(row.model);
    const auto key = std::make_pair(row.model.name(), row.model.position.method);
    const Json& first = seen.emplace(key, options).first->second;
    for (const auto& [name, value] : options.items())
      if (first.contains(name) && first[name] != value) differing.insert(name);
  }
  return {differing.begin(), differing.end()};
}

std::string note(const PaperRow& row, int64_t parameters) {
  if (row.out_of_memory) return "out of memory in the paper";
  return row.agrees(parameters).value_or(true) ? "" : "differs";
}

std::vector<Column> paper_columns(const PaperTable& table,
                                  const std::vector<std::string>& options) {
  std::vector<Column> columns = {{"model"}, {"method"}};
  for (const auto& name : options) columns.push_back({name, Align::right});
  columns.push_back({"parameters", Align::right});
  columns.push_back({"paper (M)", Align::right});
  for (const auto& result : table.rows.front().results)
    columns.push_back({result.first, Align::right});
  columns.push_back({});
  return columns;
}

std::vector<std::string> paper_cells(const PaperRow& row, const std::vector<std::string>& options) {
  const Json json = row_json(row);
  const int64_t parameters = json["parameters"];
  std::vector<std::string> cells = {json["model"], json["method"]};
  for (const auto& name : options) cells.push_back(json.contains(name) ? cell(json[name]) : "-");
  cells.push_back(grouped(parameters));
  cells.push_back(row.printed_millions.value_or("-"));
  for (const auto& [metric, value] : row.results)
    cells.push_back(value ? fmt::format("{:.2f}", *value) : "-");
  cells.push_back(note(row, parameters));
  return cells;
}

std::string agreement(const PaperTable& table) {
  size_t printed = 0, agreeing = 0;
  for (const auto& row : table.rows) {
    const auto agrees = row.agrees(model_cost(row.model).parameters);
    printed += agrees.has_value();
    agreeing += agrees.value_or(false);
  }
  const size_t silent = table.rows.size() - printed;
  return fmt::format("{} of {} printed counts agree with ours{}.", agreeing, printed,
                     silent > 0 ? fmt::format("; {} rows have none", silent) : "");
}

std::string paper_text(const PaperTable& paper) {
  const auto options = differing_options(paper);
  Table table(paper_columns(paper, options));
  for (const auto& row : paper.rows) table.add(paper_cells(row, options));
  return fmt::format("{}: {}\n\n{}\n{}\n", paper.name, paper.title, table.str(), agreement(paper));
}

// ---------------------------------------------------------------------------------- command

void show_paper_table(const InfoFlags& flags) {
  auto others = flags.model.given();
  for (const auto& option :
       {flags.batch, flags.shards, flags.ranks, flags.parallel, flags.offload, flags.accumulate})
    if (option.given()) others.push_back(option.name());
  if (flags.precision.read()) others.emplace_back("--precision");
  require(others.empty(), "--paper-table and ", others.empty() ? "" : others.front(),
          " do not go together");
  const auto table = paper_table(value_of(flags.table).text);
  if (!flags.json) return fmt::print("{}", paper_text(table));
  Json rows;
  for (const auto& row : table.rows) rows.push_back(row_json(row));
  fmt::print("{}", json_text(rows));
}

void show_model(const InfoFlags& flags) {
  auto model = flags.model.read();
  model.precision = flags.precision.read().value_or(Precision::float32);
  const auto step = step_of(flags);
  step.parallel.check(model);
  if (flags.json)
    fmt::print("{}", json_text(Json::array({model_json(model, step)})));
  else
    fmt::print("{}", model_text(model, step));
}

}  // namespace

void add_info(Command program) {
  auto command = program.add_command("info", "Print parameters, FLOPs and memory of a model");
  const auto flags = std::make_shared<InfoFlags>(command);
  command.footer(kInfoExamples);
  command.run([flags] {
    if (flags->table.given())
      show_paper_table(*flags);
    else
      show_model(*flags);
  });
}

}  // namespace translution::cli
