#include <fmt/format.h>

#include "commands.h"
#include "model_flags.h"
#include "print_line.h"
#include "threads.h"
#include "translution/core/cpu_info.h"
#include "translution/train/run_report.h"

namespace translution::cli {
namespace {

constexpr const char* kReportExamples =
    "Writes one self-contained file. It has a chart with the curves of all runs; for each run and\n"
    "evaluation set, a confusion matrix of up to 2,000 samples and images with predictions and "
    "the\n"
    "attention of the class token; and for each run, the norms of the learned matrices over the "
    "grid\n"
    "of offsets.\n"
    "\n"
    "Examples:\n"
    "  translution report runs/alpha\n"
    "  translution report runs/self runs/alpha --out both.html";

struct ReportFlags {
  explicit ReportFlags(Command command) : precision(command, "each run's"), device(command) {}

  PrecisionFlag precision;
  DeviceFlag device;
  std::vector<std::string> runs;
  Option out;
  bool curves_only = false;
};

void run_report(const ReportFlags& flags) {
  use_threads(usable_cores());
  const std::string out =
      flags.out.given() ? value_of(flags.out).text : flags.runs.front() + "/report.html";
  write_run_report(out, flags.runs,
                   {!flags.curves_only, flags.precision.read(), flags.device.read(), print_line});
  fmt::print("{}\n", out);
}

}  // namespace

void add_report(Command program) {
  auto command = program.add_command("report", "Write an HTML report of runs");
  const auto flags = std::make_shared<ReportFlags>(command);
  command.argument("RUN", flags->runs, "run directory");
  flags->out = command.option("--out", "FILE", "HTML file to write (report.html in the first RUN)");
  command.flag("--curves-only", flags->curves_only, "write curves only, without loading models");
  command.footer(kReportExamples);
  command.run([flags] { run_report(*flags); });
}

}  // namespace translution::cli
