// Ways to damage the bytes of a file.

#include <algorithm>

#include "tests/damage/subjects.h"
#include "translution/core/error.h"
#include "translution/core/random.h"

namespace translution::testing {

using namespace detail;

namespace {

constexpr size_t kFirst = 20, kLast = 10, kMaxMarks = 24, kTextBytes = 1 << 16;

// Offsets where a part of a format may end: all near the beginning and the end, and after
// characters that separate words and numbers in text.
std::vector<size_t> boundaries(const std::string& bytes) {
  std::vector<size_t> marks;
  for (size_t at = kFirst; at + kLast < std::min(kTextBytes, bytes.size()); ++at)
    if (std::string_view("{}[],:\n").find(bytes[at]) != std::string_view::npos)
      marks.push_back(at + 1);
  std::vector<size_t> offsets;
  for (size_t at = 0; at < std::min(kFirst, bytes.size()); ++at) offsets.push_back(at);
  for (size_t i = 0; i < std::min(kMaxMarks, marks.size()); ++i)
    offsets.push_back(marks[i * marks.size() / std::min(kMaxMarks, marks.size())]);
  for (size_t left = kLast; left > 0; --left)
    if (bytes.size() > kFirst + left) offsets.push_back(bytes.size() - left);
  return offsets;
}

// Removing spaces and newlines at the end of a text does no harm.
bool only_blank(const std::string& bytes, size_t from) {
  return bytes.find_first_not_of(" \n", from) == std::string::npos;
}

Damage truncate(const Subject& subject, const std::string& bytes, size_t at) {
  return {join("truncated at byte ", at, " of ", bytes.size()), bytes.substr(0, at),
          subject.ends && !only_blank(bytes, at)};
}

Damage planned(const Subject& subject, const std::string& bytes, size_t n) {
  const auto& lies = subject.lies;
  const auto offsets = boundaries(bytes);
  n %= lies.size() + offsets.size();
  if (n < lies.size()) return {lies[n].first, lies[n].second, true};
  return truncate(subject, bytes, offsets[n - lies.size()]);
}

bool checked(const Subject& subject, size_t from, size_t to) {
  return from < subject.checked_to && to > subject.checked_from;
}

// A random offset; half of the draws are near the beginning, where headers are.
size_t draw_offset(const std::string& bytes, Random& random) {
  const auto size = static_cast<int64_t>(bytes.size());
  return random.below(random.chance(0.5) ? std::min<int64_t>(64, size) : size);
}

Damage flip(const Subject& subject, std::string bytes, Random& random) {
  const size_t at = draw_offset(bytes, random);
  const auto bit = static_cast<int>(random.below(8));
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
  return {join("bit ", bit, " of byte ", at, " flipped"), bytes, checked(subject, at, at + 1)};
}

// Overwrites 2, 4 or 8 bytes with the largest unsigned number, or with only the sign bit set.
Damage overwrite(const Subject& subject, std::string bytes, Random& random) {
  const size_t width = size_t{2} << random.below(3);
  const size_t at = std::min(draw_offset(bytes, random), bytes.size() - width);
  std::string number(width, random.chance(0.5) ? '\xff' : '\0');
  if (number[0] == '\0') number[random.chance(0.5) ? 0 : width - 1] = '\x80';
  const bool same = bytes.compare(at, width, number) == 0;
  bytes.replace(at, width, number);
  return {join(width, " bytes at ", at, " overwritten"), bytes,
          !same && checked(subject, at, at + 1) && checked(subject, at + width - 1, at + width)};
}

Damage move_bytes(const Subject& subject, std::string bytes, Random& random) {
  const size_t at = draw_offset(bytes, random);
  const size_t count = std::min<size_t>(1 + random.below(40), bytes.size() - at);
  const std::string part = bytes.substr(at, count);
  const bool twice = random.chance(0.5);
  twice ? bytes.insert(at, part) : bytes.erase(at, count);
  const bool all = subject.checked_from == 0 && subject.checked_to > bytes.size();
  return {join(count, " bytes at ", at, twice ? " twice" : " missing"), bytes, all};
}

Damage drawn(const Subject& subject, const std::string& bytes, Random random) {
  switch (random.below(8)) {
    case 0:
      return truncate(subject, bytes, random.below(static_cast<int64_t>(bytes.size())));
    case 1:
    case 2:
      return overwrite(subject, bytes, random);
    case 3:
      return move_bytes(subject, bytes, random);
    default:
      return flip(subject, bytes, random);
  }
}

}  // namespace

Damage make_damage(const Subject& subject, uint64_t seed, int64_t n) {
  const std::string bytes = subject.bytes();
  if (n % 2 == 0) return planned(subject, bytes, n / 2);
  return drawn(subject, bytes, Random({seed, static_cast<uint64_t>(n)}));
}

}  // namespace translution::testing
