#pragma once

#include <string>

#include "apps/translution/reproduce/plan.h"
#include "apps/translution/reproduce/results.h"

namespace translution {
struct DataSource;
}

namespace translution::cli {

/// A call of `translution reproduce`.
struct ReproduceCall {
  PlanRequest request;
  std::string out;    ///< directory of results, table, curves and report
  std::string runs;   ///< directory of the run directories
  std::string known;  ///< directory of results; trainings finished there are skipped; empty: none
  int threads = 1;
  double memory_gb = 20;  ///< memory limit of one step
};

/// Prints the plan: trainings with time and memory, and cuts from the recipe. Trains nothing. If
/// the data of a recipe is missing, its known sizes are used.
void show_plan(const ReproduceCall& call);
/// Prints the plan for one step of each row.
void show_steps(const ReproduceCall& call);
/// Runs the trainings that are not finished. Writes the results after every evaluation.
void reproduce_table(const ReproduceCall& call);
/// Runs one training step at the paper's batch size for each row. Throws before the first step if
/// one does not fit into memory.
void reproduce_steps(const ReproduceCall& call);

/// Writes results.json and table.md. Merges the fresh rows into those of an existing results.json.
Results write_results(const ReproduceCall& call, const Results& fresh);
/// Opens training data. If the data of a recipe is missing, the message says how to fetch it.
DataSource open_to_train(const DataOptions& data);
/// The command that reproduces this row. `mode`: "--budget desk", or "--one-step".
std::string row_command(const ReproduceCall& call, const PlanRow& row, const std::string& mode);

}  // namespace translution::cli
