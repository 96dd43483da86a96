#include "signals.h"

#include <csignal>

namespace translution::cli {
namespace {

std::atomic<bool> stop_was_requested{false};
volatile std::sig_atomic_t last_signal = 0;

void request_stop(int signal) {
  last_signal = signal;
  stop_was_requested = true;
}

}  // namespace

void stop_at_signals() {
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  if (std::signal(SIGHUP, request_stop) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

void ignore_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

const std::atomic<bool>& stop_requested() { return stop_was_requested; }

Stopped::Stopped(const std::string& message)
    : std::runtime_error(message), exit_code_(128 + static_cast<int>(last_signal)) {}

}  // namespace translution::cli
