#include "ranks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>

#include "signals.h"
#include "translution/core/error.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr int kLookAtSignals = 100;  // ms
constexpr int kSignalCodes = 128;    // exit codes from here on: stopped with a checkpoint

int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, kAddress, &address.sin_addr);
  socklen_t size = sizeof address;
  auto* const pointer = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      fd >= 0 && bind(fd, pointer, size) == 0 && getsockname(fd, pointer, &size) == 0;
  close(fd);
  ensure(found, "launch: no free port on ", kAddress, ": ", std::strerror(errno));
  return ntohs(address.sin_port);
}

// A pipe from a rank, read in lines.
class Lines {
 public:
  Lines() {
    ensure(pipe2(ends_.data(), O_CLOEXEC) == 0, "launch: no pipe: ", std::strerror(errno));
  }
  ~Lines() {
    for (const int end : ends_)
      if (end >= 0) close(end);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  int reader() const { return ends_[0]; }  // -1 after the end
  int writer() const { return ends_[1]; }
  void close_writer() { close_end(1); }
  // Calls `show` for each line that has arrived, and at the end for an unfinished one.
  template <typename Show>
  void read(const Show& show) {
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(ends_[0], bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) return;
    if (count > 0) text_.append(bytes.data(), static_cast<size_t>(count));
    for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      show(text_.substr(0, end));
      text_.erase(0, end + 1);
    }
    if (count > 0) return;
    if (!text_.empty()) show(text_);
    close_end(0);
  }

 private:
  void close_end(int end) {
    close(ends_[end]);
    ends_[end] = -1;
  }

  std::array<int, 2> ends_{};
  std::string text_;
};

struct Rank {
  pid_t id = -1;  // -1: ended
  Lines out, err;
};

class Ranks {
 public:
  Ranks(int count, const std::vector<std::string>& arguments) : ranks_(count) {
    const int port = free_port();
    for (int rank = 0; rank < count; ++rank) start(rank, port, arguments);
  }
  ~Ranks() { kill_all(); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // Returns the exit code of the first rank that did not end well, or 0.
  int wait() {
    bool forwarded = false;
    while (has_running()) {
      if (stop_requested() && !forwarded) {
        forwarded = true;
        for (const auto& rank : ranks_)
          if (rank.id > 0) kill(rank.id, stop_signal());
      }
      read_lines();
    }
    return code_;
  }
  const std::string& reason() const { return reason_; }

 private:
  void start(int rank, int port, const std::vector<std::string>& arguments);
  bool has_running() const {
    for (const auto& rank : ranks_)
      if (rank.id > 0) return true;
    return false;
  }
  void read_lines();
  void show(size_t rank, std::FILE* to, const std::string& line);
  void end(size_t rank);
  void kill_all();

  std::vector<Rank> ranks_;
  int code_ = 0;
  std::string reason_;   // why the others were stopped, if the rank could not say it
  bool failed_ = false;  // a rank has failed; what the others say about it is not shown
  std::set<std::string> errors_;
};

// The variables that a rank finds in its environment.
void set_place(int rank, int count, int port) {
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
  };
  for (const char* name : {"RANK", "LOCAL_RANK"}) set(name, std::to_string(rank));
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) set(name, std::to_string(count));
  set("MASTER_ADDR", kAddress);
  set("MASTER_PORT", std::to_string(port));
  unsetenv("TORCHELASTIC_USE_AGENT_STORE");   // of a torchrun that runs this program
  setenv("TORCH_CPP_LOG_LEVEL", "ERROR", 0);  // else LibTorch warns of each attempt to connect
}

void Ranks::start(int rank, int port, const std::vector<std::string>& arguments) {
  auto& [id, out, err] = ranks_[rank];
  std::vector<char*> pointers = {const_cast<char*>("translution")};
  for (const auto& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  id = fork();
  ensure(id >= 0, "launch: cannot start rank ", rank, ": ", std::strerror(errno));
  if (id == 0) {
    setpgid(0, 0);  // Ctrl-C reaches this program, which passes it on once
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
    dup2(out.writer(), STDOUT_FILENO);
    dup2(err.writer(), STDERR_FILENO);
    set_place(rank, static_cast<int>(ranks_.size()), port);
    execv("/proc/self/exe", pointers.data());
    _exit(127);
  }
  out.close_writer();
  err.close_writer();
}

void Ranks::read_lines() {
  std::vector<pollfd> waiting;
  for (const auto& rank : ranks_)
    for (const int fd : {rank.out.reader(), rank.err.reader()})
      waiting.push_back({fd, POLLIN, 0});  // poll ignores -1
  if (poll(waiting.data(), waiting.size(), kLookAtSignals) <= 0) return;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    auto& rank = ranks_[r];
    if (waiting[2 * r].revents != 0)
      rank.out.read([&](const std::string& line) { show(r, stdout, line); });
    if (waiting[2 * r + 1].revents != 0)
      rank.err.read([&](const std::string& line) { show(r, stderr, line); });
    if (rank.id > 0 && rank.out.reader() < 0 && rank.err.reader() < 0) end(r);
  }
}

void Ranks::show(size_t rank, std::FILE* to, const std::string& line) {
  if (failed_) return;
  if (line.rfind("translution: ", 0) == 0 && !errors_.insert(line).second) return;
  std::fputs(fmt::format("[{}] {}\n", rank, line).c_str(), to);
  std::fflush(to);
}

void Ranks::end(size_t rank) {
  int status = 0;
  waitpid(ranks_[rank].id, &status, 0);
  ranks_[rank].id = -1;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (code == 0 || failed_) return;
  if (code_ == 0) code_ = code;
  if (WIFEXITED(status) && code >= kSignalCodes) return;  // the others stop, too
  failed_ = true;
  code_ = code;
  if (WIFSIGNALED(status) && stop_requested()) {
    code_ = kSignalCodes + stop_signal();
  } else if (WIFSIGNALED(status)) {
    reason_ = fmt::format(
        "rank {} was killed by signal {} ({}); all ranks were stopped. --resume auto continues",
        rank, WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  kill_all();
}

void Ranks::kill_all() {
  for (const auto& rank : ranks_)
    if (rank.id > 0) kill(rank.id, SIGKILL);
}

}  // namespace

void run_ranks(int count, const std::vector<std::string>& arguments) {
  const StopAtSignals signals;
  Ranks ranks(count, arguments);
  if (const int code = ranks.wait(); code != 0) throw Stopped(ranks.reason(), code);
}

}  // namespace translution::cli
