#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/names.h"
#include "translution/core/roles.h"

namespace translution {

inline constexpr Named<bool> kSwitch[] = {{true, "on", ""}, {false, "off", ""}};

/// The value of a setting as text. Messages begin with the name.
struct TRANSLUTION_API SettingValue {
  std::string name, text;

  int64_t number() const;                             ///< a whole number
  int64_t number(int64_t least, int64_t most) const;  ///< a whole number in [least, most]
  double real(double least, double most) const;       ///< a number in [least, most]
  bool on() const;                                    ///< "on" or "off"
  std::vector<int64_t> sides() const;                 ///< "84" or "84x60": two numbers
  std::vector<int64_t> grid() const;                  ///< "160", "7x7", "4x7x7"
  std::vector<std::string> words() const;             ///< "static,dynamic"

  template <typename Choice, size_t count>
  Choice one_of(const Named<Choice> (&table)[count]) const {
    return parse_name(name.c_str() + name.find_first_not_of('-'), table, text);
  }
  /// Only the first `listed` of `names` are offered to users. Throws if the text is one of the
  /// others.
  void check_listed(const std::vector<std::string>& names, size_t listed) const;
};

/// The choices of a setting for the help, as "static|dynamic|fresh"; "NAME" if there are more
/// than 7.
TRANSLUTION_API std::string choices_text(const std::vector<std::string>& names);
template <typename Choice, size_t count>
std::string choices_text(const Named<Choice> (&table)[count]) {
  return choices_text(names_of(table));
}

/// The shortest text that parses to the same number.
TRANSLUTION_API std::string number_text(double number);

// ------------------------------------------------------------------------------ kinds of fields

/// The type of a value in JSON and in Python.
enum class FieldType { whole, real, on_off, word, sides };

namespace fields {

/// How the values of a field are converted from and to text.
template <typename T>
struct Kind {
  FieldType type;
  std::string placeholder;  ///< for the help: "N", "on|off"
  std::function<T(const SettingValue&)> read;
  std::function<std::string(const T&)> text;  ///< empty: unset
  std::vector<std::string> names = {};        ///< of all choices
  size_t listed = names.size();               ///< names for users; the rest are internal
  std::string unset = {};                     ///< default in the help, if it is not a value
};

/// A whole number in [least, most].
template <typename T = int64_t>
Kind<T> whole(int64_t least, int64_t most = int64_t{1} << 40) {
  return {FieldType::whole, "N",
          [=](const SettingValue& value) { return static_cast<T>(value.number(least, most)); },
          [](const T& number) { return std::to_string(number); }};
}
TRANSLUTION_API Kind<int64_t> whole();  ///< any
TRANSLUTION_API Kind<double> real(double least, double most);
TRANSLUTION_API Kind<double> real();  ///< any
TRANSLUTION_API Kind<bool> on_off();
TRANSLUTION_API Kind<Roles> roles();
TRANSLUTION_API Kind<std::vector<int64_t>> sides();  ///< two sides, in pixels
TRANSLUTION_API Kind<std::vector<int64_t>> grid();   ///< any number of sides
TRANSLUTION_API Kind<std::string> any_text(const char* placeholder);

/// One of the names in `table`; users see the first `listed`.
template <typename Choice, size_t count>
Kind<Choice> one_of(const Named<Choice> (&table)[count], size_t listed = count) {
  auto names = names_of(table);
  const std::vector<std::string> shown(names.begin(), names.begin() + listed);
  return {FieldType::word,
          choices_text(shown),
          [&table](const SettingValue& value) { return value.one_of(table); },
          [&table](const Choice& choice) { return std::string(name_of(table, choice)); },
          std::move(names),
          listed};
}

/// A field that may be unset; `unset` is the default that the help shows.
template <typename T>
Kind<std::optional<T>> unset_or(const char* unset, Kind<T> kind) {
  return {kind.type,
          kind.placeholder,
          [read = kind.read](const SettingValue& value) { return std::optional<T>(read(value)); },
          [text = kind.text](const std::optional<T>& value) {
            return value ? text(*value) : std::string();
          },
          kind.names,
          kind.listed,
          unset};
}

}  // namespace fields

// ------------------------------------------------------------------------------ tables of fields

/// The members of a setting that do not depend on the options struct.
struct SettingInfo {
  std::string name;  ///< "image-size" in files, "--image-size" on the command line
  FieldType type;
  std::string placeholder, help;
  std::vector<std::string> names = {};  ///< as in fields::Kind
  size_t listed = 0;
  std::string unset = {};
  bool only_changes = false;  ///< not written if it has its default value
  bool of_the_run = false;    ///< does not affect the result; may change on resume
  std::string before = {};  ///< value if a checkpoint has no entry for it, since it is older or the
                            ///< default is not written
};

/// One field of an options struct with its name and help text. The command line, configuration
/// files, checkpoints, JSON and the Python signatures are all derived from the same list.
template <typename Options>
struct Setting : SettingInfo {
  std::function<void(Options&, const SettingValue&)> set;
  std::function<std::string(const Options&)> text;  ///< empty: unset
  bool (*concerns)(const Options&) = nullptr;  ///< whether it applies to the options; null: always

  /// `field`: a pointer to the member, or a function that returns a reference to it.
  template <typename T, typename Field>
  Setting(const char* name, Field field, const fields::Kind<T>& kind, const char* help)
      : SettingInfo{name, kind.type, kind.placeholder, help, kind.names, kind.listed, kind.unset},
        set([=](Options& o, const SettingValue& value) {
          std::invoke(field, o) = kind.read(value);
        }),
        text([=](const Options& o) { return kind.text(std::invoke(field, o)); }) {}
  /// The same for an accessor that TORCH_ARG defines.
  template <typename T>
  Setting(const char* name, T& (Options::*field)(), const fields::Kind<T>& kind, const char* help)
      : Setting(
            name, [=](const Options& o) -> T& { return (const_cast<Options&>(o).*field)(); }, kind,
            help) {}
  /// The same for a getter and a setter of one name.
  template <typename T>
  Setting(const char* name, T (Options::*get)() const, Options& (Options::*put)(T),
          const fields::Kind<T>& kind, const char* help)
      : SettingInfo{name, kind.type, kind.placeholder, help, kind.names, kind.listed, kind.unset},
        set([=](Options& o, const SettingValue& value) { (o.*put)(kind.read(value)); }),
        text([=](const Options& o) { return kind.text((o.*get)()); }) {}
  /// A setting of the member `part` of the options.
  template <typename Part, typename Field>
  Setting(const Setting<Part>& inner, Field part)
      : SettingInfo(inner),
        set([=](Options& o, const SettingValue& value) { inner.set(std::invoke(part, o), value); }),
        text([=](const Options& o) { return inner.text(std::invoke(part, o)); }) {}

  Setting only_for(bool (*concerned)(const Options&)) const {
    return with([=](Setting& s) { s.concerns = concerned; });
  }
  Setting free_on_resume() const {
    return with([](Setting& s) { s.of_the_run = true; });
  }
  Setting left_out_by_default() const {
    return with([](Setting& s) { s.only_changes = true; });
  }
  Setting unset_means(const char* what) const {
    return with([=](Setting& s) { s.unset = what; });
  }
  Setting before_it(const char* value) const {
    return with([=](Setting& s) { s.before = value; });
  }
  Setting with(const std::function<void(Setting&)>& change) const {
    Setting changed = *this;
    change(changed);
    return changed;
  }

  bool is_for(const Options& options) const { return !concerns || concerns(options); }
  /// The help text, followed by the default in brackets.
  std::string help_text() const {
    return detail::join(help, " (", unset.empty() ? text(Options()) : unset, ")");
  }
};

template <typename Options>
struct SettingGroup {
  const char* title;
  std::vector<Setting<Options>> settings;
};

template <typename Options>
using Settings = std::vector<SettingGroup<Options>>;

/// Converts the settings of the member `part` to settings of `Options`.
template <typename Options, typename Part, typename Field>
Settings<Options> settings_of_part(const Settings<Part>& part_groups, Field part) {
  Settings<Options> groups;
  for (const auto& [title, settings] : part_groups) {
    groups.push_back({title, {}});
    for (const auto& setting : settings) groups.back().settings.emplace_back(setting, part);
  }
  return groups;
}

/// The groups of all lists, concatenated.
template <typename Options>
Settings<Options> joined_settings(const std::vector<Settings<Options>>& tables) {
  Settings<Options> all;
  for (const auto& groups : tables) all.insert(all.end(), groups.begin(), groups.end());
  return all;
}

/// The settings with these names.
template <typename Options>
Settings<Options> settings_named(Settings<Options> groups, const std::vector<std::string>& names) {
  const auto is_other = [&](const Setting<Options>& setting) {
    return std::find(names.begin(), names.end(), setting.name) == names.end();
  };
  for (auto& [title, settings] : groups)
    settings.erase(std::remove_if(settings.begin(), settings.end(), is_other), settings.end());
  return groups;
}

/// Names and values as text, in order.
using SettingTexts = std::vector<std::pair<std::string, std::string>>;

enum class WhichSettings {
  all,      ///< settings that apply to the options
  learned,  ///< of these, the ones that affect the result
  named,    ///< all that affect the result, even if they do not apply; names of trainings are
            ///< derived from them, so entries must not disappear
};

template <typename Options>
SettingTexts texts_of(const Settings<Options>& groups, const Options& options,
                      WhichSettings which = WhichSettings::all) {
  SettingTexts texts;
  for (const auto& group : groups)
    for (const auto& setting : group.settings) {
      if (which != WhichSettings::all && setting.of_the_run) continue;
      if (which != WhichSettings::named && !setting.is_for(options)) continue;
      auto text = setting.text(options);
      if (text.empty() || (setting.only_changes && text == setting.text(Options()))) continue;
      texts.emplace_back(setting.name, std::move(text));
    }
  return texts;
}

/// The `before` values, by name: used for settings that a checkpoint has no entry for.
template <typename Options>
std::map<std::string, std::string> texts_before(const Settings<Options>& groups) {
  std::map<std::string, std::string> texts;
  for (const auto& group : groups)
    for (const auto& setting : group.settings)
      if (!setting.before.empty()) texts.emplace(setting.name, setting.before);
  return texts;
}

/// Sets one field from a user's text. Throws if the text is not allowed.
template <typename Options>
void set_text(const Setting<Options>& setting, Options& options, const SettingValue& value) {
  value.check_listed(setting.names, setting.listed);
  setting.set(options, value);
}

/// Sets the fields that `texts` has a value for; ignores its other names. Messages put `prefix`
/// before the name: "--" for values from the command line.
template <typename Options>
void set_all(const Settings<Options>& groups, const std::map<std::string, std::string>& texts,
             Options& options, const std::string& prefix = "") {
  for (const auto& group : groups)
    for (const auto& setting : group.settings)
      if (const auto found = texts.find(setting.name); found != texts.end())
        set_text(setting, options, {prefix + setting.name, found->second});
}

}  // namespace translution
