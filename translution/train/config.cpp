#include "translution/train/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "translution/core/error.h"
#include "translution/io/file.h"
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace translution {
namespace {

constexpr int64_t kMostBytes = 1 << 20;

std::string text_of(const toml::node& node, const std::string& path, const std::string& name) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return number_text(number->get());
  if (const auto* on = node.as_boolean()) return switch_text(on->get());
  const auto* list = node.as_array();
  ensure(list != nullptr, path, ": ", name, " wants text, a number, true, false or a list");
  std::string joined;
  for (const auto& element : *list) {
    ensure(!element.is_array() && !element.is_table(), path, ": ", name, " wants a plain list");
    joined += (joined.empty() ? "" : ",") + text_of(element, path, name);
  }
  return joined;
}

void collect(const toml::table& table, const std::string& path,
             const std::vector<std::string>& known, std::map<std::string, std::string>& texts) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (const auto* section = node.as_table()) {
      collect(*section, path, known, texts);
      continue;
    }
    require(std::find(known.begin(), known.end(), name) != known.end(), path, ": unknown setting '",
            name, "'; did you mean '", nearest_name(name, known), "'?");
    require(texts.emplace(name, text_of(node, path, name)).second, path, ": ", name,
            " is there more than once");
  }
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    const bool control = static_cast<unsigned char>(c) < ' ' || c == 0x7f;
    out += control ? fmt::format("\\u{:04X}", static_cast<int>(c)) : std::string(1, c);
  }
  return out + '"';
}

}  // namespace

std::map<std::string, std::string> parse_config(std::string_view text, const std::string& path,
                                                const std::vector<std::string>& known) {
  std::map<std::string, std::string> texts;
  try {
    collect(toml::parse(text, path), path, known, texts);
  } catch (const toml::parse_error& error) {
    throw std::runtime_error(join(path, ":", error.source().begin.line, ": ", error.description()));
  }
  return texts;
}

std::map<std::string, std::string> read_config(const std::string& path,
                                               const std::vector<std::string>& known) {
  return parse_config(read_file(path, kMostBytes), path, known);
}

std::string format_config(const std::vector<std::string>& comments,
                          const std::vector<ConfigSection>& sections) {
  std::string text;
  for (const auto& comment : comments) text += "# " + comment + "\n";
  for (const auto& section : sections) {
    text += (text.empty() ? "[" : "\n[") + section.title + "]\n";
    for (const auto& [name, value] : section.texts) text += name + " = " + quoted(value) + "\n";
  }
  return text;
}

}  // namespace translution
