#include <fmt/format.h>
#include <spawn.h>

#include "commands.h"
#include "model_flags.h"
#include "print_line.h"
#include "serve/handlers.h"
#include "serve/http_server.h"
#include "serve/loaded_models.h"
#include "signals.h"
#include "threads.h"
#include "translution/core/cpu_info.h"
#include "translution/train/device.h"

extern char** environ;

namespace translution::cli {
namespace {

constexpr int64_t kPort = 8765;
constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kServeExamples =
    "Serves one page: drag a digit over the canvas and see what each run predicts, what it\n"
    "attends to, and at which places it is right. Runs that take the same pictures are shown side\n"
    "by side. A run that is still being trained shows its curves and takes its newest checkpoint.\n"
    "Ctrl-C stops. POST /predict takes a PNG file, a JPEG file or JSON, and answers with JSON.\n"
    "\n"
    "Only this machine can open the page unless --host names another address. It has no password.\n"
    "\n"
    "Examples:\n"
    "  translution serve runs/self runs/alpha\n"
    "  translution serve runs/alpha --port 9000 --open";

struct ServeFlags {
  explicit ServeFlags(Command command) : precision(command, "each run's"), device(command) {
    command.argument("RUN", runs, "run directory, checkpoint or file of weights");
    host = command.option("--host", "ADDRESS",
                          fmt::format("address to listen on ({}, this machine only)", kLoopback));
    port = command.option("--port", "N", fmt::format("port; 0: any free one ({})", kPort));
    command.flag("--open", open, "open the page in a browser");
  }

  PrecisionFlag precision;
  DeviceFlag device;
  std::vector<std::string> runs;
  Option host, port;
  bool open = false;
};

// The address for a browser: an IPv6 address has brackets, and 0.0.0.0 is no address to go to.
std::string url_of(const std::string& host, int port) {
  const bool any = host == "0.0.0.0" || host == "::";
  const auto name = any ? kLoopback : host;
  return name.find(':') == std::string::npos ? fmt::format("http://{}:{}/", name, port)
                                             : fmt::format("http://[{}]:{}/", name, port);
}

void open_browser(std::string url) {
  std::string program = "xdg-open";
  char* const arguments[] = {program.data(), url.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0)
    print_line("cannot open a browser: xdg-open is not installed; open the address yourself");
}

void run_serve(const ServeFlags& flags) {
  use_threads(usable_cores());
  const std::string host = flags.host.given() ? value_of(flags.host).text : kLoopback;
  const int64_t port = flags.port.given() ? value_of(flags.port).number(0, 65535) : kPort;
  find_device(flags.device.read());  // throws before a run is loaded
  serve::LoadedModels models(flags.runs, {flags.precision.read(), flags.device.read()});
  const StopAtSignals signals;  // until here, Ctrl-C ends the program at once
  ignore_closed_pipes();
  const serve::Site site{host};
  serve::HttpServer server(host, static_cast<int>(port), [&](const serve::Request& request) {
    return serve::respond(request, site, models);
  });
  const auto url = url_of(host, server.port());
  fmt::print("{}\n", url);
  std::fflush(stdout);
  if (flags.open) open_browser(url);
  server.run(stop_requested(), [&] { models.stop(); });
}

}  // namespace

void add_serve(Command program) {
  auto command =
      program.add_command("serve", "Show runs on a page: drag a digit, see what they do");
  const auto flags = std::make_shared<ServeFlags>(command);
  command.footer(kServeExamples);
  command.run([flags] { run_serve(*flags); });
}

}  // namespace translution::cli
