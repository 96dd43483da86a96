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
    "One file without anything from outside: curves of all runs in one picture; for each run and\n"
    "evaluation set the confusion matrix of up to 2,000 samples, images with predictions and what\n"
    "the class token looks at; and the norm of the learned matrices over the grid of offsets.\n"
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
  auto command = program.add_command("report", "Pictures of one or more runs, as one HTML file");
  const auto flags = std::make_shared<ReportFlags>(command);
  command.argument("RUN", flags->runs, "run directories");
  flags->out = command.option("--out", "FILE", "HTML file to write (report.html in the first run)");
  command.flag("--curves-only", flags->curves_only, "curves only; models are not loaded");
  command.footer(kReportExamples);
  command.run([flags] { run_report(*flags); });
}

}  // namespace translution::cli
