#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "json_text.h"
#include "model_flags.h"
#include "table.h"
#include "translution/core/cpu_info.h"
#include "translution/core/memory.h"
#include "translution/models/cost.h"
#include "translution/models/split_cost.h"
#include "translution/ops/products.h"

namespace translution::cli {

using namespace detail;

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kBatch = 256, kMost = 1 << 20;
constexpr double kGiga = 1e9;
constexpr const char* kBandwidth = "10Gbit/s";

constexpr const char* kPlanExamples =
    "A split DxO is --parallel data=D,offset=O of train: D groups of O ranks. Each group takes\n"
    "its share of the samples; each rank of it owns some slots of every table.\n"
    "Columns:\n"
    "  data part     bytes that each rank sends per step for the sums of gradients over D ranks\n"
    "  offset part   bytes that each rank sends per step for the sums of scores, outputs and\n"
    "                their gradients over O ranks\n"
    "  products      seconds per step at the machine's rate of matrix products\n"
    "  travel        seconds per step for what leaves a machine, without latency\n"
    "  step          products and travel, one after the other\n"
    "  memory        of each rank\n"
    "The recommended split is the fastest one that fits into the memory of a machine. Several\n"
    "numbers of machines print the recommended split of each. docs/scaling.md has the formulas.\n"
    "\n"
    "Examples:\n"
    "  translution plan --model vit-a/12 --method translution --machines 8 --bandwidth 10Gbit/s\n"
    "  translution plan --model vit-c/16 --method translution --machines 8,64,256,1024 \\\n"
    "                   --bandwidth 100Gbit/s --memory 256 --gflops 2000\n"
    "  translution plan --model gpt-a-160 --method translution --machines 4 --ranks-per-machine 2";

struct PlanFlags {
  explicit PlanFlags(Command command) : model(command), precision(command, "float32") {
    command.require_one_of({model.model()});
    batch =
        command.option("--batch", "N", fmt::format("samples per step of all ranks ({})", kBatch));
    accumulate = command.option("--accumulate", "N",
                                "parts that each rank splits its samples into, to save memory (1)");
    machines = command.option("--machines", "N,...", "number of machines, or several (1)");
    ranks = command.option("--ranks-per-machine", "N", "processes on a machine (1)");
    bandwidth = command.option(
        "--bandwidth", "SPEED",
        fmt::format("what a machine sends while it receives, in Gbit/s or GB/s ({})", kBandwidth));
    memory = command.option("--memory", "GB", "memory of a machine, in 10^9 bytes (this one's)");
    gflops = command.option("--gflops", "N",
                            "rate of matrix products of a machine (measured on this one)");
    command.flag("--json", json, "print JSON");
  }

  ModelFlags model;
  PrecisionFlag precision;
  Option batch, accumulate, machines, ranks, bandwidth, memory, gflops;
  bool json = false;
};

// Bytes per second.
double bandwidth_of(const std::string& text) {
  constexpr double kBitsPerByte = 8;
  char* unit = nullptr;
  const double number = std::strtod(text.c_str(), &unit);
  const std::string name = unit;
  require(number > 0 && (name == "Gbit/s" || name == "GB/s"),
          "--bandwidth: expected a number with Gbit/s or GB/s, as in ", kBandwidth, ", got '", text,
          "'");
  return kGiga * number / (name == "Gbit/s" ? kBitsPerByte : 1);
}

std::vector<int64_t> machines_of(const PlanFlags& flags) {
  std::vector<int64_t> machines;
  const std::string text = flags.machines.given() ? value_of(flags.machines).text : "1";
  for (const auto& word : SettingValue{"--machines", text}.words())
    machines.push_back(SettingValue{"--machines", word}.number(1, kMost));
  return machines;
}

// What was asked for, with the defaults.
struct PlanCall {
  ModelOptions model;
  StepSize step;
  std::vector<int64_t> machines;
  Cluster cluster;  // its number of machines is one of these
};

double or_else(const Option& option, const std::function<double()>& fallback) {
  return option.given() ? kGiga * value_of(option).real(1e-3, 1e12) : fallback();
}

PlanCall call_of(const PlanFlags& flags) {
  PlanCall call{flags.model.read(), {}, machines_of(flags), {}};
  call.model.precision = flags.precision.read().value_or(Precision::float32);
  call.step.batch = number_or(kBatch, flags.batch, kMost);
  call.step.parts = number_or(1, flags.accumulate, kMost);
  call.cluster.ranks_per_machine = number_or(1, flags.ranks, kMost);
  call.cluster.bandwidth =
      bandwidth_of(flags.bandwidth.given() ? value_of(flags.bandwidth).text : kBandwidth);
  call.cluster.memory = or_else(flags.memory, [] { return static_cast<double>(usable_bytes()); });
  call.cluster.flops = or_else(flags.gflops, [&] {
    return kGiga * ProductRate(call.model.precision, usable_cores()).best_gflops();
  });
  return call;
}

std::vector<SplitCost> costs_of(const PlanCall& call, int64_t machines) {
  auto cluster = call.cluster;
  cluster.machines = machines;
  return split_costs(call.model, call.step, cluster);
}

// ------------------------------------------------------------------------------------- JSON

Json split_json(int64_t machines, const SplitCost& cost, bool best) {
  return {{"machines", machines},
          {"data", cost.split.data},
          {"offset", cost.split.offset},
          {"data_bytes", cost.data_bytes},
          {"offset_bytes", cost.offset_bytes},
          {"product_s", cost.product_seconds},
          {"travel_s", cost.travel_seconds},
          {"step_s", cost.step_seconds()},
          {"rank_bytes", cost.memory_bytes},
          {"fits", cost.fits},
          {"recommended", best}};
}

Json plan_json(const PlanCall& call) {
  Json json = {{"model", call.model.name()},
               {"method", name_of(kMethods, call.model.position.method)},
               {"precision", name_of(kPrecisions, call.model.precision)},
               {"parameters", model_cost(call.model).parameters},
               {"table_parameters", table_sizes(call.model).parameters},
               {"batch", call.step.batch},
               {"accumulate", call.step.parts},
               {"ranks_per_machine", call.cluster.ranks_per_machine},
               {"bandwidth_bytes_per_s", call.cluster.bandwidth},
               {"memory_bytes", call.cluster.memory},
               {"gflops", call.cluster.flops / kGiga},
               {"splits", Json::array()}};
  for (const int64_t machines : call.machines) {
    const auto costs = costs_of(call, machines);
    const auto* best = recommended(costs);
    for (const auto& cost : costs)
      json["splits"].push_back(split_json(machines, cost, &cost == best));
  }
  return json;
}

// ------------------------------------------------------------------------------------- text

std::string seconds_text(double seconds) { return fmt::format("{:.3g} s", seconds); }

std::vector<std::string> cells_of(int64_t machines, const SplitCost& cost, bool best) {
  return {grouped(machines),
          fmt::format("{}x{}", cost.split.data, cost.split.offset),
          in_bytes(cost.data_bytes),
          in_bytes(cost.offset_bytes),
          seconds_text(cost.product_seconds),
          seconds_text(cost.travel_seconds),
          seconds_text(cost.step_seconds()),
          in_bytes(cost.memory_bytes),
          best        ? "recommended"
          : cost.fits ? "fits"
                      : "too large"};
}

std::string plan_table(const PlanCall& call) {
  Table table({{"machines", Align::right},
               {"split", Align::right},
               {"data part", Align::right},
               {"offset part", Align::right},
               {"products", Align::right},
               {"travel", Align::right},
               {"step", Align::right},
               {"memory", Align::right},
               {}});
  for (const int64_t machines : call.machines) {
    const auto costs = costs_of(call, machines);
    const auto* best = recommended(costs);
    if (call.machines.size() == 1)
      for (const auto& cost : costs) table.add(cells_of(machines, cost, &cost == best));
    else if (best != nullptr)
      table.add(cells_of(machines, *best, true));
    else
      table.add({grouped(machines), "-", "", "", "", "", "", "", "no split fits"});
  }
  return table.str();
}

std::string plan_text(const PlanCall& call) {
  const auto& [machines, ranks, bandwidth, flops, memory] = call.cluster;
  return fmt::format(
      "{} with {}: {} parameters, {} of them in tables that ranks can split\n"
      "{} samples per step; a machine: {} {}, {:.4g} GB/s, {}, {:.4g} GFLOP/s in {}\n\n{}",
      call.model.name(), name_of(kMethods, call.model.position.method),
      grouped(model_cost(call.model).parameters), grouped(table_sizes(call.model).parameters),
      grouped(call.step.batch), ranks, ranks == 1 ? "rank" : "ranks", bandwidth / kGiga,
      in_bytes(memory), flops / kGiga, name_of(kPrecisions, call.model.precision),
      plan_table(call));
}

}  // namespace

void add_plan(Command program) {
  auto command =
      program.add_command("plan", "Find the fastest way to share a training over machines");
  const auto flags = std::make_shared<PlanFlags>(command);
  command.footer(kPlanExamples);
  command.run([flags] {
    const auto call = call_of(*flags);
    fmt::print("{}", flags->json ? json_text(plan_json(call)) : plan_text(call));
  });
}

}  // namespace translution::cli
