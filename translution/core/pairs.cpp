#include "translution/core/pairs.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/core/slot_part.h"

namespace translution {

using namespace detail;

namespace {

// Capacity of each cache. Objects that layers hold stay alive after eviction.
constexpr int64_t kCacheBytes = int64_t{128} << 20;

constexpr std::pair<Sharing, std::string_view> kSharingWords[] = {
    {Sharing::direction, "direction="},
    {Sharing::logarithmic, "logarithmic="},
    {Sharing::window, "window="},
};

[[noreturn]] void reject(const std::string& text) {
  throw std::invalid_argument(join(
      "pairs: expected a text such as '7x7 cls', '160 causal' or 'causal', got ", in_quotes(text)));
}

// --- parsing

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool parse_number(std::string_view text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool take_prefix(std::string_view& word, std::string_view prefix) {
  if (word.substr(0, prefix.size()) != prefix) return false;
  word.remove_prefix(prefix.size());
  return true;
}

struct ParsedText {
  std::shared_ptr<const OffsetTable> offsets;
  bool causal = false;             // mask j > i, even if the table has slots for these pairs
  std::vector<int64_t> part = {};  // the slots of the text's part; empty without one
};

bool parse_option(std::string_view word, OffsetOptions& options) {
  if (word == "cls") return options.cls = true;
  if (word == "causal") return options.causal = true;
  if (word == "absolute") return options.encoding = Encoding::absolute, true;
  for (const auto& [sharing, prefix] : kSharingWords)
    if (take_prefix(word, prefix)) {
      options.sharing = sharing;
      return parse_number(word, options.radius);
    }
  return false;
}

OffsetOptions parse_grid(const std::string& text, const std::vector<std::string_view>& words) {
  OffsetOptions options;
  for (const auto side : split(words[0], 'x')) {
    options.grid.push_back(0);
    if (!parse_number(side, options.grid.back())) reject(text);
  }
  if (times(options.grid) != words[0]) reject(text);
  for (size_t w = 1; w < words.size(); ++w)
    if (!parse_option(words[w], options)) reject(text);
  return options;
}

// "0,1*3,-1" gives 0, 1, 1, 1, -1.
std::vector<int64_t> parse_numbers(const std::string& text, std::string_view list) {
  constexpr int64_t kMaxNumbers = int64_t{1} << 32;
  std::vector<int64_t> numbers;
  for (const auto item : split(list, ',')) {
    const size_t star = std::min(item.find('*'), item.size());
    int64_t number = 0, times = 1;
    const bool ok = parse_number(item.substr(0, star), number) &&
                    (star == item.size() || parse_number(item.substr(star + 1), times));
    if (!ok || times < 1 || times > kMaxNumbers - static_cast<int64_t>(numbers.size()))
      reject(text);
    numbers.insert(numbers.end(), times, number);
  }
  return numbers;
}

ParsedText parse_relation(const std::string& text, const std::vector<std::string_view>& words) {
  const bool causal = words.back() == "causal";
  if (words.size() != (causal ? 4 : 3)) reject(text);
  auto mirror = words[1], slots = words[2];
  if (!take_prefix(mirror, "mirror=") || !take_prefix(slots, "slots=")) reject(text);
  const auto matrix = parse_numbers(text, slots);
  int64_t tokens = 0;
  while ((tokens + 1) * (tokens + 1) <= static_cast<int64_t>(matrix.size())) ++tokens;
  const auto keys = parse_numbers(text, mirror);
  return {std::make_shared<const OffsetTable>(
              OffsetTable::from_relation(matrix, tokens, static_cast<int64_t>(keys.size()), keys)),
          causal};
}

// Removes a last word such as "part=1/4".
std::optional<SlotPart> take_part(std::vector<std::string_view>& words) {
  if (words.empty()) return std::nullopt;
  auto numbers = words.back();
  if (!take_prefix(numbers, "part=")) return std::nullopt;
  const size_t slash = std::min(numbers.find('/'), numbers.size());
  SlotPart part;
  const bool ok = slash < numbers.size() && parse_number(numbers.substr(0, slash), part.index) &&
                  parse_number(numbers.substr(slash + 1), part.count);
  require(ok, "pairs: expected part=R/P with two numbers, got ", in_quotes(words.back()));
  words.pop_back();
  return part;
}

ParsedText parse_words(const std::string& text, const std::vector<std::string_view>& words) {
  if (words.empty()) return {};
  if (words.size() == 1 && words[0] == "causal") return {nullptr, true};
  if (words[0] == "relation") return parse_relation(text, words);
  return {std::make_shared<const OffsetTable>(parse_grid(text, words)), false};
}

ParsedText parse_text(const std::string& text) {
  auto words = split(text, ' ');
  const auto part = take_part(words);
  auto parsed = parse_words(text, words);
  if (!part) return parsed;
  require(parsed.offsets != nullptr, "pairs: expected slots to split into parts, got ",
          in_quotes(text), "; leave out the part");
  parsed.part = slots_of(*parsed.offsets, *part);
  return parsed;
}

std::shared_ptr<const ParsedText> parse_cached(const std::string& text) {
  static Recent<std::string, ParsedText> cache(kCacheBytes, [](const ParsedText& parsed) {
    const int64_t tokens = parsed.offsets ? parsed.offsets->num_tokens() : 0;
    return static_cast<int64_t>(sizeof(int64_t)) * tokens * tokens;
  });
  return cache.get(text, [&] { return std::make_shared<const ParsedText>(parse_text(text)); });
}

// --- writing

std::string write_numbers(const std::vector<int64_t>& numbers) {
  std::string list;
  for (size_t first = 0, last = 0; first < numbers.size(); first = last) {
    while (last < numbers.size() && numbers[last] == numbers[first]) ++last;
    list += (list.empty() ? "" : ",") + std::to_string(numbers[first]);
    if (last - first > 1) list += "*" + std::to_string(last - first);
  }
  return list;
}

// --- tokens of a smaller grid

// The tokens of a smaller grid, as tokens of the text's table.
std::vector<int64_t> tokens_of(const OffsetOptions& table, const std::vector<int64_t>& grid) {
  require(grid.size() == table.grid.size(), "pairs: expected a grid of ", table.grid.size(),
          " sides within ", times(table.grid), ", got ", times(grid));
  std::vector<int64_t> tokens{0};
  for (size_t axis = 0; axis < grid.size(); ++axis) {
    require(grid[axis] >= (table.cls ? 0 : 1) && grid[axis] <= table.grid[axis],
            "pairs: expected a grid within ", times(table.grid), ", got ", times(grid));
    std::vector<int64_t> next;
    for (const int64_t token : tokens)
      for (int64_t p = 0; p < grid[axis]; ++p) next.push_back(token * table.grid[axis] + p);
    tokens = std::move(next);
  }
  if (!table.cls) return tokens;
  for (int64_t& token : tokens) ++token;
  tokens.insert(tokens.begin(), 0);
  return tokens;
}

// The grid of a name. A number of tokens instead of a grid selects a prefix of a 1-D table.
std::vector<int64_t> grid_of(const PairsName& name, const OffsetTable& table) {
  if (!name.grid.empty() || name.tokens == 0 || name.tokens == table.num_tokens()) return name.grid;
  const auto& options = table.options();
  require(options.grid.size() == 1 && name.tokens > 0 && name.tokens < table.num_tokens(),
          "pairs: expected ", options.grid.size() == 1 ? "1 to " : "", table.num_tokens(),
          " tokens, got ", name.tokens);
  return {name.tokens - (options.cls ? 1 : 0)};
}

std::vector<int64_t> count_up(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void check_rows(const std::vector<int64_t>& rows, int64_t tokens) {
  const auto [low, high] = std::minmax_element(rows.begin(), rows.end());
  require(rows.empty() || (*low >= 0 && *high < tokens), "pairs: expected query rows from 0 to ",
          tokens - 1, ", got ", rows.empty() ? 0 : *low, " to ", rows.empty() ? 0 : *high);
}

// Slots of all pairs of the given tokens.
std::vector<int64_t> slots_between(const OffsetTable& table, const std::vector<int64_t>& tokens) {
  std::vector<int64_t> slots;
  slots.reserve(tokens.size() * tokens.size());
  for (const int64_t i : tokens)
    for (const int64_t j : tokens) slots.push_back(table.slot(i, j));
  return slots;
}

}  // namespace

std::string pairs_text(const OffsetOptions& o) {
  std::string text = times(o.grid);
  if (o.cls) text += " cls";
  if (o.causal) text += " causal";
  if (o.encoding == Encoding::absolute) text += " absolute";
  for (const auto& [sharing, prefix] : kSharingWords)
    if (o.sharing == sharing) text += join(" ", prefix, o.radius);
  return text;
}

std::string pairs_text(const OffsetTable& table, bool causal) {
  const auto& options = table.options();
  if (!options.grid.empty() && (options.causal || !causal)) return pairs_text(options);
  const auto slots = slots_between(table, count_up(table.num_tokens()));
  return "relation mirror=" + write_numbers(table.mirror()) + " slots=" + write_numbers(slots) +
         (causal ? " causal" : "");
}

Pairs::Pairs(PairsName name, std::shared_ptr<const OffsetTable> offsets, bool causal,
             const std::vector<int64_t>& part)
    : name_(std::move(name)), offsets_(std::move(offsets)), tokens_(name_.tokens) {
  if (offsets_)
    slot_count_ = part.empty() ? offsets_->num_slots() : static_cast<int64_t>(part.size());
  std::vector<int64_t> matrix;  // [N,N]: slots of all tokens
  if (offsets_) {
    const auto grid = grid_of(name_, *offsets_);
    require(grid.empty() || !offsets_->options().grid.empty(),
            "pairs: expected no grid with a relation, got ", times(grid));
    const auto tokens =
        grid.empty() ? count_up(offsets_->num_tokens()) : tokens_of(offsets_->options(), grid);
    tokens_ = static_cast<int64_t>(tokens.size());
    require(name_.tokens == 0 || name_.tokens == tokens_, "pairs: expected ", tokens_,
            " tokens for the grid ", times(grid), ", got ", name_.tokens);
    matrix = slots_between(*offsets_, tokens);
    spans_ = grid.empty() ? offsets_->spans() : find_spans(matrix, offsets_->mirror());
  }
  require(tokens_ > 0, "pairs: expected a number of tokens of 1 or more with ",
          in_quotes(name_.text), ", got ", tokens_);
  check_rows(name_.rows, tokens_);
  if (!name_.rows.empty()) spans_ = select_rows(spans_, name_.rows);
  const auto rows = name_.rows.empty() ? count_up(tokens_) : name_.rows;
  queries_ = static_cast<int64_t>(rows.size());
  for (const int64_t i : rows)
    for (int64_t j = 0; j < tokens_; ++j) {
      if (offsets_) slots_.push_back(static_cast<int32_t>(matrix[i * tokens_ + j]));
      const bool has_slot = !offsets_ || slots_.back() >= 0;
      open_.push_back(has_slot && (!causal || j <= i));
      all_have_slots_ = all_have_slots_ && has_slot;
      all_open_ = all_open_ && open_.back();
    }
  if (!part.empty()) keep_part(part);
}

// Renumbers the slots of the part. Pairs of other slots stay open, but have no slot.
void Pairs::keep_part(const std::vector<int64_t>& part) {
  std::vector<int32_t> place(offsets_->num_slots(), -1);
  for (size_t row = 0; row < part.size(); ++row) place[part[row]] = static_cast<int32_t>(row);
  for (int32_t& slot : slots_)
    if (slot >= 0) slot = place[slot];
  all_have_slots_ = std::all_of(slots_.begin(), slots_.end(), [](int32_t s) { return s >= 0; });
  std::vector<PairSpan> kept;
  for (PairSpan& span : spans_) {
    span.slot = span.key_slot = place[span.slot];
    if (span.slot >= 0) kept.push_back(span);
  }
  spans_ = std::move(kept);
}

std::shared_ptr<const Pairs> find_pairs(const PairsName& name) {
  static Recent<PairsName, Pairs> cache(kCacheBytes, [](const Pairs& pairs) {
    return 5 * pairs.queries() * pairs.tokens() +
           static_cast<int64_t>(sizeof(PairSpan) * pairs.spans().size());
  });
  return cache.get(name, [&] {
    const auto parsed = parse_cached(name.text);
    return std::make_shared<const Pairs>(name, parsed->offsets, parsed->causal, parsed->part);
  });
}

std::shared_ptr<const OffsetTable> find_offsets(const std::string& text) {
  return parse_cached(text)->offsets;
}

bool has_part(const std::string& text) { return !parse_cached(text)->part.empty(); }

int64_t count_rows(const std::string& text) {
  const auto parsed = parse_cached(text);
  if (!parsed->part.empty()) return static_cast<int64_t>(parsed->part.size());
  return parsed->offsets ? parsed->offsets->num_slots() : 0;
}

}  // namespace translution
