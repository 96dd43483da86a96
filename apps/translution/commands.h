#pragma once

#include <CLI/CLI.hpp>

namespace translution::cli {

// Each adds one command, with its options, to the program.
void add_bench(CLI::App& program);
void add_completion(CLI::App& program);
void add_configs(CLI::App& program);
void add_convert(CLI::App& program);
void add_data(CLI::App& program);
void add_eval(CLI::App& program);
void add_generate(CLI::App& program);
void add_info(CLI::App& program);
void add_list(CLI::App& program);
void add_manual(CLI::App& program);
void add_predict(CLI::App& program);
void add_report(CLI::App& program);
void add_reproduce(CLI::App& program);
void add_results(CLI::App& program);
void add_train(CLI::App& program);

// What follows the name of a command in a call: " RUN... [OPTIONS]".
std::string arguments_of(const CLI::App& app);

}  // namespace translution::cli
