#include <fmt/format.h>

#include "commands.h"
#include "model_flags.h"
#include "threads.h"
#include "translution/core/cpu_info.h"
#include "translution/data/token_files.h"
#include "translution/models/generate.h"
#include "translution/train/device.h"
#include "translution/train/trained.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr int64_t kTokens = 200;
constexpr const char* kGenerateExamples =
    "Prints the prompt and the new text, token by token. The tokenizer is that of the data the\n"
    "model was trained on, unless --data names other data.\n"
    "\n"
    "Examples:\n"
    "  translution generate runs/shakespeare --prompt 'ROMEO:' --tokens 200\n"
    "  translution generate runs/shakespeare --temperature 0.8 --top-k 50 --seed 7";

const Settings<SamplingOptions>& sampling_settings() {
  using namespace fields;
  using O = SamplingOptions;
  using F = Setting<SamplingOptions>;
  static const Settings<SamplingOptions> groups = {
      {"Sampling",
       {F("temperature", &O::temperature, real(0, 1e3),
          "sampling temperature: lower is safer, higher more varied; 0: always the likeliest "
          "token"),
        F("top-k", &O::top_k, whole(0, 1 << 30), "number of likeliest tokens sampled from; 0: all"),
        F("top-p", &O::top_p, real(0, 1),
          "total probability of the likeliest tokens sampled from; 1: all"),
        F("seed", &O::seed, whole<uint64_t>(0, std::numeric_limits<int64_t>::max()),
          "seed of the random numbers")}}};
  return groups;
}

struct GenerateFlags {
  explicit GenerateFlags(Command command)
      : settings(command), precision(command, "the run's"), device(command) {
    command.argument("RUN", path, "run directory, checkpoint or file of weights");
    settings.add("prompt", "TEXT", "beginning of the text (a line feed)", "Text");
    settings.add("data", "tokens:DIR", "data with the tokenizer to use (the run's)", "Text");
    settings.add("tokens", "N", fmt::format("length of the new text in tokens ({})", kTokens),
                 "Text");
    settings.add(sampling_settings());
  }

  SettingFlags settings;
  PrecisionFlag precision;
  DeviceFlag device;
  std::string path;
};

// A token may end inside a UTF-8 character. Prints complete characters only, and holds the rest
// back until the next token.
class Stream {
 public:
  void write(const std::string& bytes) {
    waiting_ += bytes;
    size_t complete = waiting_.size();
    while (complete > 0 && waiting_.size() - complete < 4 && is_continuation(complete - 1))
      --complete;
    if (complete > 0 && starts_character(complete - 1)) --complete;
    print(waiting_.size() - complete >= 4 ? waiting_.size() : complete);
  }
  void finish() { print(waiting_.size()); }

 private:
  bool is_continuation(size_t at) const { return (waiting_[at] & 0xC0) == 0x80; }
  bool starts_character(size_t at) const { return (waiting_[at] & 0xC0) == 0xC0; }
  void print(size_t count) {
    std::fwrite(waiting_.data(), 1, count, stdout);
    std::fflush(stdout);
    waiting_.erase(0, count);
  }

  std::string waiting_;
};

std::string data_of(const Trained& trained, const std::map<std::string, std::string>& given) {
  for (const auto* settings : {&given, &trained.config})
    if (const auto found = settings->find("data"); found != settings->end()) return found->second;
  throw std::invalid_argument(join(
      trained.path, " does not name its data; name data with its tokenizer: --data tokens:DIR"));
}

// Refuses a tokenizer whose vocabulary is not the model's: the tokens would stand for other words.
Tokenizer tokenizer_of(const Trained& trained, const std::map<std::string, std::string>& given) {
  const auto data = data_of(trained, given);
  const size_t colon = data.find(':');
  require(data == "text" || (data.rfind("tokens:", 0) == 0 && colon + 1 < data.size()),
          "--data: expected tokens:DIR, got '", data, "'");
  auto tokenizer = data == "text" ? Tokenizer::bytes() : read_tokenizer(data.substr(colon + 1));
  require(tokenizer.vocabulary() == trained.vocabulary, data,
          ": expected a tokenizer with the model's vocabulary of ", trained.vocabulary, ", got ",
          tokenizer.vocabulary(), "; choose the data of the training with --data tokens:DIR");
  return tokenizer;
}

void run_generate(const GenerateFlags& flags) {
  use_threads(usable_cores());
  const auto given = flags.settings.given();
  SamplingOptions sampling;
  set_all(sampling_settings(), given, sampling, "--");
  const auto count = given.find("tokens");
  const int64_t tokens =
      count == given.end() ? kTokens : SettingValue{"--tokens", count->second}.number(1, 1 << 30);
  const auto device = find_device(flags.device.read());
  auto trained = load_trained(flags.path, flags.precision.read());
  trained.network->to(device);
  require(trained.network->options().family == Family::gpt, flags.path, " holds ",
          trained.network->options().name(), "; text needs a gpt model");
  const auto tokenizer = tokenizer_of(trained, given);
  const auto prompt = given.find("prompt");
  const std::string start = prompt == given.end() ? "\n" : prompt->second;
  const auto encoded = tokenizer.encode(start);
  Generator generator(trained.network->gpt(), sampling);
  generator.feed({encoded.begin(), encoded.end()});
  Stream stream;
  stream.write(start);
  for (int64_t i = 0; i < tokens; ++i)
    stream.write(tokenizer.decode({static_cast<int32_t>(generator.next())}));
  stream.finish();
  fmt::print("\n");
}

}  // namespace

void add_generate(Command program) {
  auto command = program.add_command("generate", "Generate text");
  const auto flags = std::make_shared<GenerateFlags>(command);
  command.footer(kGenerateExamples);
  command.run([flags] { run_generate(*flags); });
}

}  // namespace translution::cli
