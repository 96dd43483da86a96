#include "translution/core/names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>

namespace translution {

using namespace detail;

namespace {

constexpr size_t kMaxListed = 12;

// Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1), above, above_previous;
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    above_previous = std::move(above), above = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] != b[j - 1]), above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], above_previous[j - 2] + 1);
    }
  }
  return row.back();
}

bool begins_with(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

// The form in which names are compared: "batch-size" for "--Batch_Size".
std::string plain_name(const std::string& name) {
  std::string plain = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  for (char& letter : plain)
    letter =
        letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return plain;
}

std::set<std::string> words_of_name(const std::string& plain) {
  std::set<std::string> words{""};
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = plain.find('-', begin);
    words.insert(plain.substr(begin, end - begin));
  }
  words.erase("");
  return words;
}

bool has_all_words(const std::set<std::string>& all, const std::set<std::string>& some) {
  return !some.empty() && std::includes(all.begin(), all.end(), some.begin(), some.end());
}

// The distance between two plain names; nothing if they are not close.
std::optional<size_t> name_distance(const std::string& name, const std::string& known) {
  constexpr size_t kShortestPrefix = 2;
  const auto& [shorter, longer] = std::minmax(
      name, known, [](const auto& one, const auto& other) { return one.size() < other.size(); });
  const size_t edits = edit_distance(name, known);
  if (edits < shorter.size() && edits <= std::max<size_t>(1, longer.size() / 3)) return edits;
  if (shorter.size() >= kShortestPrefix && begins_with(longer, shorter))
    return name.size() < known.size() ? 1 : 2;  // a truncated name is closer than an extended one
  const auto words = words_of_name(name), known_words = words_of_name(known);
  if (has_all_words(words, known_words) || has_all_words(known_words, words)) return 2;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> near_name(const std::string& name,
                                     const std::vector<std::string>& known) {
  std::optional<std::string> nearest;
  size_t least = 0;
  for (const auto& other : known) {
    const auto distance = name_distance(plain_name(name), plain_name(other));
    if (!distance || (nearest && least <= *distance)) continue;
    nearest = other, least = *distance;
  }
  return nearest;
}

std::string name_hint(const std::string& name, const std::vector<std::string>& known) {
  if (const auto near = near_name(name, known)) return join("; did you mean '", *near, "'?");
  if (known.empty() || known.size() > kMaxListed) return "";
  std::string list;
  for (const auto& other : known) list += (list.empty() ? "" : ", ") + other;
  return "; expected one of " + list;
}

}  // namespace translution
