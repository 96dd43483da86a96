#include "apps/translution/serve/worker.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace translution::serve {
namespace {

using testing::message_of;

TEST(Worker, ReturnsResultsAndPassesExceptionsOn) {
  Worker worker(4, [] { return false; });
  EXPECT_EQ(worker.run([] { return 7; }), 7);
  EXPECT_EQ(message_of([&] { worker.run([]() -> int { throw std::runtime_error("no"); }); }), "no");
}

TEST(Worker, RefusesTasksBeyondItsLimit) {
  Worker worker(0, [] { return false; });
  try {
    worker.run([] { return 0; });
    FAIL() << "a task was taken";
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.status(), kBusy);
  }
}

TEST(Worker, StoppingRefusesThoseThatWait) {
  Worker worker(4, [] { return false; });
  std::promise<void> begun, release;
  std::thread first([&] {
    worker.run([&] {
      begun.set_value();
      release.get_future().wait();
      return 0;
    });
  });
  begun.get_future().wait();
  std::string message;
  std::thread second([&] { message = message_of<Refusal>([&] { worker.run([] { return 0; }); }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  worker.stop();
  second.join();
  EXPECT_EQ(message, "the server stops");
  release.set_value();
  first.join();
}

TEST(Worker, GivesBackgroundWorkWayToTasks) {
  std::atomic<int> pieces{0};
  Worker* self = nullptr;
  std::atomic<bool> ready{false};
  Worker worker(4, [&] {
    while (ready && !self->wanted()) std::this_thread::yield();  // ends only for a task
    ++pieces;
    return true;
  });
  self = &worker;
  ready = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(worker.run([] { return 1; }), 1);
  EXPECT_GE(pieces, 1);
  worker.stop();
  EXPECT_EQ(message_of<Refusal>([&] { worker.run([] { return 1; }); }), "the server stops");
}

}  // namespace
}  // namespace translution::serve
