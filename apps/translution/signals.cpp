#include "signals.h"

#include <csignal>

namespace translution::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
std::atomic<bool> stop_was_requested{false};
volatile std::sig_atomic_t last_signal = 0;

void request_stop(int signal) {
  last_signal = signal;
  stop_was_requested = true;
}

}  // namespace

StopAtSignals::StopAtSignals() {
  for (int s = 0; s < kCount; ++s) {
    before_[s] = std::signal(kSignals[s], request_stop);
    if (kSignals[s] == SIGHUP && before_[s] == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  }
}

StopAtSignals::~StopAtSignals() {
  for (int s = 0; s < kCount; ++s) std::signal(kSignals[s], before_[s]);
}

void ignore_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

const std::atomic<bool>& stop_requested() { return stop_was_requested; }

int stop_signal() { return last_signal == 0 ? SIGTERM : static_cast<int>(last_signal); }

Stopped::Stopped(const std::string& message) : Stopped(message, 128 + stop_signal()) {}

Stopped::Stopped(const std::string& message, int exit_code)
    : std::runtime_error(message), exit_code_(exit_code) {}

}  // namespace translution::cli
