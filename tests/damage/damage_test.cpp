// Runs the program on damaged files. It must fail with a message of one line, or succeed if the
// damage is harmless; it must not crash, hang or need much memory. TRANSLUTION_DAMAGE_CASE=N
// repeats one case and leaves its files.

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "tests/apps/program.h"
#include "tests/damage/subjects.h"
#include "tests/support/study.h"
#include "translution/core/error.h"

namespace translution::testing {

using namespace detail;

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeed = 20;
constexpr int64_t kMaxExtraKib = 64 << 10;
constexpr double kTimeout = 120;  // seconds; generous for a machine in use

std::string fill_in(std::string arguments, const std::string& directory) {
  for (size_t at; (at = arguments.find("{}")) != std::string::npos;)
    arguments.replace(at, 2, directory);
  return arguments;
}

// Hard-links the files; the caller replaces the ones that change.
void copy_tree(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::copy(from, to,
           fs::copy_options::recursive | fs::copy_options::create_hard_links |
               fs::copy_options::copy_symlinks);
}

// Copies the tree with the subject's file replaced by `bytes`. Files that the program writes to are
// real copies.
void copy_with(const Subject& subject, const std::string& bytes, const std::string& to) {
  copy_tree(subject.tree, to);
  for (const char* name : {"metrics.jsonl", "metrics.csv", "config.toml"})
    if (fs::exists(to + "/" + name)) {
      const auto own = get_bytes(to + "/" + name);
      fs::remove(to + "/" + name);
      put_bytes(to + "/" + name, own);
    }
  fs::remove(to + "/" + subject.file);
  put_bytes(to + "/" + subject.file, bytes);
  if (subject.seal) subject.seal(to);
}

// Warnings about single files may precede it, as for a broken image or a skipped checkpoint.
bool ends_with_one_message(const std::string& err) {
  const std::string start = "translution: ";
  const size_t at = err.compare(0, start.size(), start) == 0 ? 0 : err.find("\n" + start);
  if (at == std::string::npos || err.back() != '\n') return false;
  return err.find('\n', at + 1) == err.size() - 1;
}

// Describes what is wrong with the outcome; empty if it is as expected.
std::string judge(const Measured& outcome, bool must_be_found, int64_t normal_kib) {
  if (outcome.hung) return "hung";
  if (outcome.signal != 0) return join("ended by signal ", outcome.signal);
  if (outcome.peak_kib > normal_kib + kMaxExtraKib)
    return join("took ", (outcome.peak_kib - normal_kib) >> 10, " MiB more than usual");
  if (outcome.code == 0) return must_be_found ? "not noticed" : "";
  if (outcome.code > 2) return join("exit code ", outcome.code);
  return ends_with_one_message(outcome.err) ? "" : "expected a message of one line";
}

struct Tally {
  int64_t refused = 0, harmless = 0, failed = 0, max_extra_kib = 0;
};

class Study {
 public:
  Study() : subjects_(make_subjects(base_)) {}

  // Runs cases [first, end), one at a time on every core.
  void run_cases(int64_t first, int64_t end) {
    measure_normal();
    std::atomic<int64_t> next{first};
    on_every_core([&](const std::string& scratch) {
      for (int64_t n; (n = next.fetch_add(1)) < end;) run_case(n, scratch);
    });
  }
  void save_case(int64_t n, const std::string& directory) const {
    const auto& subject = subject_of(n);
    const auto damage = damage_of(n);
    copy_with(subject, damage.bytes, directory);
    std::printf("case %ld: %s, %s\n  translution %s\n", static_cast<long>(n), subject.name.c_str(),
                damage.what.c_str(), fill_in(subject.arguments, directory).c_str());
  }
  void print() const {
    Tally all;
    for (const auto& subject : subjects_) {
      const auto& tally = tallies_.at(subject.name);
      print_figure("damaged " + subject.name, text_of(tally));
      all.refused += tally.refused, all.harmless += tally.harmless, all.failed += tally.failed;
      all.max_extra_kib = std::max(all.max_extra_kib, tally.max_extra_kib);
    }
    print_figure(join("all damaged files, from seed ", kSeed), text_of(all));
  }

 private:
  const Subject& subject_of(int64_t n) const { return subjects_[n % subjects_.size()]; }
  Damage damage_of(int64_t n) const {
    return make_damage(subject_of(n), kSeed, n / static_cast<int64_t>(subjects_.size()));
  }

  template <typename Work>
  void on_every_core(const Work& work) const {
    cpu_set_t usable;
    sched_getaffinity(0, sizeof usable, &usable);
    std::vector<std::thread> threads;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &usable)) continue;
      threads.emplace_back([&work, core, this] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        sched_setaffinity(0, sizeof one, &one);  // inherited by the program
        work(base_ / ("core" + std::to_string(core)));
      });
    }
    for (auto& thread : threads) thread.join();
  }

  void measure_normal() {
    for (const auto& subject : subjects_) tallies_[subject.name], normal_kib_[subject.name];
    std::atomic<size_t> next{0};
    on_every_core([&](const std::string& scratch) {
      for (size_t s; (s = next.fetch_add(1)) < subjects_.size();) {
        const auto& subject = subjects_[s];
        copy_with(subject, subject.bytes(), scratch);
        const auto outcome = run_on(subject, scratch);
        EXPECT_EQ(outcome.code, 0) << subject.name << ", undamaged: " << outcome.err;
        normal_kib_.at(subject.name) = outcome.peak_kib;
      }
    });
  }

  static Measured run_on(const Subject& subject, const std::string& scratch) {
    return run_measured(fill_in(subject.arguments, scratch), kTimeout, scratch + ".err");
  }

  void run_case(int64_t n, const std::string& scratch) {
    const auto& subject = subject_of(n);
    const auto damage = damage_of(n);
    copy_with(subject, damage.bytes, scratch);
    const auto outcome = run_on(subject, scratch);
    const int64_t normal = normal_kib_.at(subject.name);
    const auto wrong = judge(outcome, damage.must_be_found, normal);
    const std::lock_guard lock(mutex_);
    auto& tally = tallies_.at(subject.name);
    ++(!wrong.empty() ? tally.failed : outcome.code == 0 ? tally.harmless : tally.refused);
    tally.max_extra_kib = std::max(tally.max_extra_kib, outcome.peak_kib - normal);
    EXPECT_EQ(wrong, "") << subject.name << ", " << damage.what << "\n"
                         << outcome.err << "repeat with TRANSLUTION_DAMAGE_CASE=" << n << " "
                         << program_invocation_name;
  }

  static std::string text_of(const Tally& tally) {
    char text[120];
    std::snprintf(text, sizeof text,
                  "%4ld refused, %4ld harmless, %2ld wrong; at most %3ld MiB more",
                  static_cast<long>(tally.refused), static_cast<long>(tally.harmless),
                  static_cast<long>(tally.failed), static_cast<long>(tally.max_extra_kib >> 10));
    return text;
  }

  const TempDir base_;
  const std::vector<Subject> subjects_;
  std::map<std::string, int64_t> normal_kib_;
  std::map<std::string, Tally> tallies_;
  std::mutex mutex_;
};

TEST(Damage, IsReportedInOneLineOrHarmless) {
  Study study;
  if (const char* one = std::getenv("TRANSLUTION_DAMAGE_CASE")) {
    const int64_t n = std::atoll(one);
    study.run_cases(n, n + 1);
    study.save_case(n, ::testing::TempDir() + "damage_case");
    return;
  }
  study.run_cases(0, repeats(64, 1000));
  study.print();
}

}  // namespace
}  // namespace translution::testing
