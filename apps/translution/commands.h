#pragma once

#include "command_line.h"

namespace translution::cli {

// Each function adds one command, with its options, to the program.
void add_bench(Command program);
void add_completion(Command program);
void add_configs(Command program);
void add_convert(Command program);
void add_data(Command program);
void add_eval(Command program);
void add_generate(Command program);
void add_info(Command program);
void add_launch(Command program);
void add_list(Command program);
void add_manual(Command program);
void add_plan(Command program);
void add_predict(Command program);
void add_report(Command program);
void add_reproduce(Command program);
void add_results(Command program);
void add_serve(Command program);
void add_train(Command program);

}  // namespace translution::cli
