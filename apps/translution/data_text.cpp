#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "commands.h"
#include "data_commands.h"
#include "model_flags.h"
#include "table.h"
#include "translution/core/error.h"
#include "translution/core/names.h"
#include "translution/data/token_files.h"
#include "translution/io/file.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr const char* kDataTextExamples =
    "Concatenates the files and splits the text at the start of a line: the first part is for\n"
    "training, the last for validation. Writes train.bin and val.bin with 16 bits per token, as\n"
    "nanoGPT does, meta.json, and a copy of the tokenizer's files. `translution train --data\n"
    "tokens:DIR` reads them.\n"
    "\n"
    "Examples:\n"
    "  translution data text book.txt --out tokens\n"
    "  scripts/fetch-gpt2-bpe gpt2\n"
    "  translution data text part1.txt part2.txt --bpe gpt2 --val-share 0.05 --out tokens";

enum class Kind { bytes, gpt2 };
constexpr Named<Kind> kKinds[] = {{Kind::bytes, "bytes", ""}, {Kind::gpt2, "gpt2", ""}};

constexpr double kValShare = 0.1;

struct TextFlags {
  explicit TextFlags(Command command) {
    command.argument("FILE", files, "plain text file");
    out = command.option("--out", "DIR", "directory of the tokens, created if missing");
    command.require_one_of({out});
    tokenizer =
        command.option("--tokenizer", "bytes|gpt2",
                       "one token per byte, or GPT-2's byte pairs (gpt2 with --bpe, else bytes)");
    bpe = command.option("--bpe", "DIR",
                         "directory of GPT-2's vocabulary, from scripts/fetch-gpt2-bpe (none)");
    val_share = command.option("--val-share", "X",
                               fmt::format("share of the text for validation ({})", kValShare));
  }

  std::vector<std::string> files;
  Option out, tokenizer, bpe, val_share;
};

// ------------------------------------------------------------------------------- options

std::string directory(const Option& option) { return option.given() ? value_of(option).text : ""; }

Tokenizer chosen_tokenizer(const TextFlags& flags) {
  const bool has_files = flags.bpe.given();
  const Kind kind = flags.tokenizer.given()
                        ? parse_name("tokenizer", kKinds, value_of(flags.tokenizer).text)
                        : (has_files ? Kind::gpt2 : Kind::bytes);
  require(kind == Kind::gpt2 || !has_files, "--tokenizer bytes and --bpe do not go together");
  require(kind == Kind::bytes || has_files,
          "--tokenizer gpt2 needs --bpe DIR with encoder.json and vocab.bpe; "
          "scripts/fetch-gpt2-bpe DIR gets them");
  return kind == Kind::gpt2 ? Tokenizer::gpt2(directory(flags.bpe)) : Tokenizer::bytes();
}

double chosen_share(const Option& option) {
  if (!option.given()) return kValShare;
  const std::string text = value_of(option).text;
  const char* const end = text.data() + text.size();
  double share = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, share);
  require(error == std::errc() && stop == end && share > 0 && share < 1,
          "--val-share: expected a number between 0 and 1, got '", text, "'");
  return share;
}

// ---------------------------------------------------------------------------------- text

std::string read_all(const std::vector<std::string>& paths) {
  std::string text;
  for (const auto& path : paths) text += read_file(path);
  return text;
}

// The start of the first line after the mark, or else of the last line. In a text of one line: the
// first character after the mark.
size_t split_point(std::string_view text, double val_share) {
  const auto mark = static_cast<size_t>(static_cast<double>(text.size()) * (1 - val_share));
  const size_t next = text.find('\n', mark);
  if (next != std::string_view::npos && next + 1 < text.size()) return next + 1;
  const size_t last = text.substr(0, mark).rfind('\n');
  if (last != std::string_view::npos) return last + 1;
  size_t point = mark;
  while (point < text.size() && (text[point] & 0xc0) == 0x80) ++point;
  return point;
}

struct Part {
  const char* name;
  std::string_view text;
  std::vector<int32_t> tokens;
};

std::string table_of(const std::vector<Part>& parts) {
  Table table({{"file"},
               {"bytes", Align::right},
               {"tokens", Align::right},
               {"bytes per token", Align::right}});
  for (const auto& part : parts) {
    const auto bytes = static_cast<double>(part.text.size());
    const auto tokens = static_cast<double>(part.tokens.size());
    table.add({part.name, grouped(bytes), grouped(tokens), fmt::format("{:.2f}", bytes / tokens)});
  }
  return table.str();
}

void run_text(const TextFlags& flags) {
  const double share = chosen_share(flags.val_share);
  const std::string out = directory(flags.out);
  const Tokenizer tokenizer = chosen_tokenizer(flags);

  const std::string all = read_all(flags.files);
  const auto start = std::chrono::steady_clock::now();
  const std::string_view text = all;
  const size_t point = split_point(text, share);
  std::vector<Part> parts = {{"train.bin", text.substr(0, point), {}},
                             {"val.bin", text.substr(point), {}}};
  for (auto& part : parts) part.tokens = tokenizer.encode(part.text);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  require(point > 0 && point < text.size(), "the text of ", text.size(),
          " bytes is too short to be split; expected at least one character in each part");
  write_token_directory(out, tokenizer, directory(flags.bpe), parts[0].tokens, parts[1].tokens);

  fmt::print("{}: {} file{}, tokenizer {} ({} tokens), {:.2f} s, {:.1f} MB/s\n\n{}", out,
             flags.files.size(), flags.files.size() == 1 ? "" : "s", tokenizer.name(),
             grouped(tokenizer.vocabulary()), time.count(),
             static_cast<double>(text.size()) / time.count() / 1e6, table_of(parts));
}

}  // namespace

void add_data_text(Command data) {
  auto command = data.add_command("text", "Tokenize plain text for a GPT");
  const auto flags = std::make_shared<TextFlags>(command);
  command.footer(kDataTextExamples);
  command.run([flags] { run_text(*flags); });
}

}  // namespace translution::cli
