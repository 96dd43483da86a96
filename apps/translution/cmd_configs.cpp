#include <fmt/format.h>

#include "apps/translution/paper/tables.h"
#include "apps/translution/reproduce/recipe.h"
#include "commands.h"
#include "translution/data/settings.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"
#include "translution/models/settings.h"
#include "translution/train/config.h"

namespace translution::cli {
namespace {

constexpr const char* kConfigsExamples =
    "Writes DIR/TABLE/NN-MODEL-METHOD.toml for `translution train --config`. The paper states\n"
    "little more than batch sizes; the lengths of training and the learning rates are ours.\n"
    "\n"
    "Examples:\n"
    "  translution configs configs\n"
    "  translution train --config configs/mnist/02-vit-a-12-alpha_translution.toml --out "
    "runs/alpha";

std::string results_text(const PaperRow& row) {
  std::string text;
  for (const auto& [name, value] : row.results)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        value ? fmt::format("{}", *value) : "-");
  return row.out_of_memory ? "out of memory" : text;
}

std::string file_name(const PaperRow& row, size_t number) {
  auto name = fmt::format("{:02}-{}-{}.toml", number, row.model.name(),
                          name_of(kMethods, row.model.position.method));
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

void write_table(const PaperTable& table, const std::string& directory) {
  make_directories(directory);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const auto& row = table.rows[r];
    const auto recipe = recipe_for(Budget::paper, subject_of(row.model));
    auto model = row.model;
    model.init = recipe.init;
    write_file_atomically(directory + "/" + file_name(row, r + 1),
                          format_config({table.title, "The paper's row: " + results_text(row)},
                                        {{"model", model_texts(model)},
                                         {"data", texts_of(data_settings(), recipe.data)},
                                         {"train", texts_of(train_settings(), recipe.train)}}));
  }
}

}  // namespace

void add_configs(Command program) {
  auto command = program.add_command(
      "configs", "Write a configuration file for each row of the paper's tables");
  const auto directory = std::make_shared<std::string>();
  command.argument("DIR", *directory, "directory to write, created if missing");
  command.footer(kConfigsExamples);
  command.run([directory] {
    for (const auto& name : paper_table_names())
      write_table(paper_table(name), *directory + "/" + name);
  });
}

}  // namespace translution::cli
