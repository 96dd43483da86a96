#pragma once

#include <string>

#include "apps/translution/reproduce/plan.h"
#include "apps/translution/reproduce/results.h"

namespace translution {
struct DataSource;
}

namespace translution::cli {

/// A table of the paper, to be reproduced.
struct ReproduceCall {
  PlanRequest request;
  std::string out;    ///< results, table, curves and report go here
  std::string runs;   ///< run directories go here
  std::string known;  ///< results whose finished trainings are not made again; empty: none
  int threads = 1;
  double memory_gb = 20;  ///< that one step may take
};

/// The plan, printed: trainings with time and memory, and what is cut. Nothing is trained. Data of
/// the budget need not have been fetched.
void show_plan(const ReproduceCall& call);
/// The same for one step of each row.
void show_steps(const ReproduceCall& call);
/// Trains what is not trained yet. Results are written after every evaluation.
void reproduce_table(const ReproduceCall& call);
/// One step of training at the paper's batch for each row; those that do not fit into memory are
/// refused before the first is taken.
void reproduce_steps(const ReproduceCall& call);

/// Writes results.json and table.md: the fresh rows over those that are there already.
Results write_results(const ReproduceCall& call, const Results& fresh);
/// Opens data to train on. Where that of a recipe is missing, the message says how to fetch it.
DataSource open_to_train(const DataOptions& data);
/// The command that makes this row again; mode: "--budget desk", or "--one-step".
std::string row_command(const ReproduceCall& call, const PlanRow& row, const std::string& mode);

}  // namespace translution::cli
