#include "translution/data/class_names.h"

#include <algorithm>
#include <cstdio>

#include "translution/core/error.h"
#include "translution/data/words.h"

namespace translution {

using namespace detail;

namespace {

constexpr size_t kMaxNamed = 3;  // classes in a message

std::vector<std::string> names_without(const std::vector<std::string>& names,
                                       const std::vector<std::string>& others) {
  std::vector<std::string> result;
  for (const auto& name : names)
    if (std::find(others.begin(), others.end(), name) == others.end()) result.push_back(name);
  return result;
}

// "'a' is new", "'a', 'b', 'c' and 4 more are new"; empty for no names.
std::string names_that_are(const std::vector<std::string>& names, const char* what) {
  if (names.empty()) return "";
  std::string text;
  for (size_t n = 0; n < std::min(kMaxNamed, names.size()); ++n)
    text += (n > 0 ? ", '" : "'") + names[n] + "'";
  if (names.size() > kMaxNamed) text += join(" and ", names.size() - kMaxNamed, " more");
  return join(text, names.size() == 1 ? " is " : " are ", what);
}

}  // namespace

std::string class_difference(const std::vector<std::string>& trained,
                             const std::vector<std::string>& now) {
  const auto missing = names_that_are(names_without(trained, now), "missing");
  const auto added = names_that_are(names_without(now, trained), "new");
  if (!missing.empty() || !added.empty())
    return missing + (missing.empty() || added.empty() ? "" : ", ") + added;
  for (size_t c = 0; c < std::min(trained.size(), now.size()); ++c)
    if (trained[c] != now[c])
      return join("class ", c, " is '", now[c], "' and was '", trained[c], "'");
  return "";
}

bool is_utf8(std::string_view text) { return well_formed(text) == text.size(); }

std::string escape_bytes(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t good = well_formed(text);
    result += text.substr(0, good);
    if (good == text.size()) break;
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02X", static_cast<unsigned char>(text[good]));
    result += code;
    text.remove_prefix(good + 1);
  }
  return result;
}

}  // namespace translution
