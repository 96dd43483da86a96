#pragma once

#include <chrono>
#include <string>

// Asked before c10d connects, because it logs each failure in lines of its own.
namespace translution {

using Seconds = std::chrono::duration<double>;

/// Whether a server may listen on the port of this machine.
bool port_is_free(int port);

/// Waits until a server listens there, at most `timeout`. Returns whether one does.
bool port_answers(const std::string& address, int port, Seconds timeout);

}  // namespace translution
