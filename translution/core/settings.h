#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "translution/core/names.h"

namespace translution {

inline constexpr Named<bool> kSwitch[] = {{true, "on", ""}, {false, "off", ""}};

/// What a setting is set to, as text. The name stands in front of every message.
struct Value {
  std::string name, text;

  int64_t number() const;                             ///< a whole number
  int64_t number(int64_t least, int64_t most) const;  ///< one of that range
  double real(double least, double most) const;       ///< a number of that range
  bool on() const;                                    ///< "on" or "off"
  std::vector<int64_t> sides() const;                 ///< "84" or "84x60": two numbers
  std::vector<int64_t> grid() const;                  ///< "160", "7x7", "4x7x7"
  std::vector<std::string> words() const;             ///< "static,dynamic"

  template <typename Choice, size_t count>
  Choice one_of(const Named<Choice> (&table)[count]) const {
    return parse_name(name.c_str() + name.find_first_not_of('-'), table, text);
  }
};

/// "static|dynamic|fresh": what a setting with these names wants.
template <typename Choice, size_t count>
std::string choices(const Named<Choice> (&table)[count]) {
  std::string text;
  for (const auto& name : names_of(table)) text += (text.empty() ? "" : "|") + name;
  return text;
}

/// The shortest text that reads back as the same number.
std::string number_text(double number);
inline std::string switch_text(bool on) { return name_of(kSwitch, on); }

/// One field of an options struct with its name and its meaning: the command line, configuration
/// files and checkpoints all go by the same table.
template <typename Options>
struct Setting {
  const char* name;  ///< "image-size": an option has "--" in front, a file has it as it is
  std::string wants, help;
  std::function<void(Options&, const Value&)> set;
  std::function<std::string(const Options&)> get;  ///< empty text: left to the default
  bool of_the_run = false;  ///< changes how a run goes, not what it learns; free when it goes on
  std::string before = {};  ///< value where a checkpoint has no text of it: it is older, or `get`
                            ///< gives none
  bool (*concerns)(const Options&) = nullptr;  ///< other options do not have it; null: all
};

template <typename Options>
struct SettingGroup {
  const char* title;
  std::vector<Setting<Options>> settings;
};

/// The settings with these names.
template <typename Options>
std::vector<SettingGroup<Options>> settings_named(std::vector<SettingGroup<Options>> groups,
                                                  const std::vector<std::string>& names) {
  const auto is_other = [&](const Setting<Options>& setting) {
    return std::find(names.begin(), names.end(), setting.name) == names.end();
  };
  for (auto& [title, settings] : groups)
    settings.erase(std::remove_if(settings.begin(), settings.end(), is_other), settings.end());
  return groups;
}

/// Names with texts, in order.
using SettingTexts = std::vector<std::pair<std::string, std::string>>;

enum class Which {
  all,      ///< settings that concern the options
  learned,  ///< of these, the ones that decide what is learned
  named,    ///< all that decide what is learned: names of trainings are made of them, so they stay
};

template <typename Options>
SettingTexts texts_of(const std::vector<SettingGroup<Options>>& groups, const Options& options,
                      Which which = Which::all) {
  SettingTexts texts;
  for (const auto& group : groups)
    for (const auto& setting : group.settings) {
      if (which != Which::all && setting.of_the_run) continue;
      if (which != Which::named && setting.concerns && !setting.concerns(options)) continue;
      auto text = setting.get(options);
      if (!text.empty()) texts.emplace_back(setting.name, std::move(text));
    }
  return texts;
}

/// Values of settings that a checkpoint has no text of, where they are known.
template <typename Options>
std::map<std::string, std::string> texts_before(const std::vector<SettingGroup<Options>>& groups) {
  std::map<std::string, std::string> texts;
  for (const auto& group : groups)
    for (const auto& setting : group.settings)
      if (!setting.before.empty()) texts.emplace(setting.name, setting.before);
  return texts;
}

/// Sets what `texts` has a value for; other names in it are left alone. Messages have `prefix` in
/// front of the name: "--" for what comes from the command line.
template <typename Options>
void set_all(const std::vector<SettingGroup<Options>>& groups,
             const std::map<std::string, std::string>& texts, Options& options,
             const std::string& prefix = "") {
  for (const auto& group : groups)
    for (const auto& setting : group.settings)
      if (const auto found = texts.find(setting.name); found != texts.end())
        setting.set(options, {prefix + setting.name, found->second});
}

}  // namespace translution
