#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/translution/paper/tables.h"
#include "commands.h"
#include "json_text.h"
#include "table.h"
#include "translution/models/authors.h"

namespace translution::cli {
namespace {

using Json = nlohmann::ordered_json;

Json all_methods() {
  Json rows;
  for (const auto& method : kMethods)
    rows.push_back({{"name", method.name}, {"summary", method.summary}});
  return rows;
}

Json all_architectures() {
  Json rows;
  for (const auto& family : kFamilies)
    for (const auto& a : architectures(family.value))
      rows.push_back({{"name", fmt::format("{}-{}", family.name, a.name)},
                      {"depth", a.depth},
                      {"dim", a.dim},
                      {"heads", a.heads},
                      {"mlp_dim", a.mlp_dim}});
  return rows;
}

// Names end in _tiny; _mini, _small, _base and _large exist, too.
Json all_authors_models() {
  Json rows;
  for (const auto& family : authors_families()) {
    const Position p = authors_position(family);
    rows.push_back({{"name", family + "_tiny"},
                    {"method", name_of(kMethods, p.method)},
                    {"roles", p.uses_offsets() ? p.roles.str() : "-"},
                    {"rotary", p.rotates() ? "on" : "off"}});
  }
  return rows;
}

Json all_paper_tables() {
  Json rows;
  for (const auto& name : paper_table_names())
    rows.push_back({{"name", name}, {"title", paper_table(name).title}});
  return rows;
}

Json everything() {
  return {{"methods", all_methods()},
          {"architectures", all_architectures()},
          {"authors_models", all_authors_models()},
          {"paper_tables", all_paper_tables()}};
}

// The keys of the first row are the titles. Numbers are aligned to the right.
std::string text_of(const Json& rows) {
  std::vector<Column> columns;
  for (const auto& [key, value] : rows.front().items())
    columns.push_back({key, value.is_number() ? Align::right : Align::left});
  Table table(columns);
  for (const auto& row : rows) {
    std::vector<std::string> cells;
    for (const auto& value : row)
      cells.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    table.add(cells);
  }
  return table.str();
}

void run_list(bool json) {
  const Json all = everything();
  if (json) {
    fmt::print("{}", json_text(all));
    return;
  }
  fmt::print("Methods (--method)\n{}\n", text_of(all["methods"]));
  fmt::print(
      "Architectures (--model; vit and gpt with a patch size or length: vit-a/12, gpt-a-160)\n{}\n",
      text_of(all["architectures"]));
  fmt::print(
      "The authors' models (--model; also _mini, _small, _base and _large; lor_qkv_tiny/56 is for\n"
      "images in patches of 56x56 pixels, lor_qkv_tiny-256 for texts of 256 tokens)\n{}\n",
      text_of(all["authors_models"]));
  fmt::print("Tables of the paper (`reproduce TABLE`, `info --paper-table TABLE`)\n{}",
             text_of(all["paper_tables"]));
}

}  // namespace

void add_list(Command program) {
  auto command = program.add_command("list", "List methods, architectures and the paper's tables");
  const auto json = std::make_shared<bool>(false);
  command.flag("--json", *json, "print JSON");
  command.footer("Examples:\n  translution list\n  translution list --json");
  command.run([json] { run_list(*json); });
}

}  // namespace translution::cli
