#include "apps/translution/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>

namespace translution::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kText = "loss 0.3121  top-1 94.1 %  1,840 samples/s  61 % of SGEMM";

// A display with a clock that is set by hand. Stores its output.
class Screen {
 public:
  explicit Screen(int columns) : columns(columns), stream_(open_memstream(&text_, &size_)) {}
  ~Screen() {
    std::fclose(stream_);
    std::free(text_);
  }

  std::unique_ptr<Progress> start(int64_t total) {
    return std::make_unique<Progress>(total, stream_,
                                      Display{[this] { return now; }, [this] { return columns; }});
  }
  std::string written() {
    std::fflush(stream_);
    return {text_, size_};
  }
  // The last line on the terminal.
  std::string last_line() {
    const std::string all = written();
    const size_t clear = all.rfind("\x1b[K");
    return clear == std::string::npos ? all : all.substr(clear + 3);
  }

  double now = 100;
  int columns;

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* stream_;
};

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Duration, HasAtMostTwoUnits) {
  const std::pair<double, const char*> known[] = {
      {0, "0 s"},           {0.4, "0 s"},         {59.4, "59 s"},      {59.6, "1 min 00 s"},
      {185, "3 min 05 s"},  {599, "9 min 59 s"},  {1500, "25 min"},    {3599, "59 min"},
      {3600, "1 h 00 min"}, {7500, "2 h 05 min"}, {86400, "1 d 00 h"}, {273600, "3 d 04 h"}};
  for (const auto& [seconds, text] : known) EXPECT_EQ(duration_text(seconds), text);
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e300})
    EXPECT_EQ(duration_text(bad), "?");
}

TEST(Progress, ShowsBarCountMetricsAndRemainingTime) {
  Screen screen(120);
  auto progress = screen.start(2000);
  progress->update(0, "");
  screen.now += 42;
  progress->update(840, kText);
  EXPECT_EQ(screen.last_line(),
            "[===========                 ]  42 %    840/2,000  loss 0.3121  top-1 94.1 %  1,840 "
            "samples/s  61 % "
            "of SGEMM  58 s left");
  screen.now += 58;
  progress->update(2000, "loss 0.1");
  progress->finish();
  EXPECT_THAT(screen.last_line(), EndsWith("] 100 %  2,000/2,000  loss 0.1  in 1 min 40 s\n"));
}

TEST(Progress, FitsEveryWidth) {
  for (const std::string text : {kText, " loss", "   loss   0.31"})
    for (int columns = 1; columns < 200; ++columns) {
      Screen screen(columns);
      auto progress = screen.start(123456789);
      progress->update(0, text);
      for (const int64_t done : {1, 1234567, 99999999, 123456789}) {
        screen.now += 1000;
        progress->update(done, text);
        EXPECT_LT(screen.last_line().size(), std::max(2, columns)) << screen.last_line();
      }
      progress->finish();
      EXPECT_LE(screen.last_line().size(), static_cast<size_t>(columns));
    }
}

TEST(Progress, LeavesOutWholePartsFromTheEnd) {
  Screen screen(58);
  auto progress = screen.start(100);
  progress->update(50, kText);
  EXPECT_THAT(screen.last_line(), HasSubstr("loss 0.3121  top-1 94.1 %"));
  EXPECT_THAT(screen.last_line(), Not(HasSubstr("1,840")));
}

TEST(Progress, IsDrawnAtMostTenTimesASecond) {
  Screen screen(80);
  auto progress = screen.start(100000);
  for (int64_t i = 0; i < 10000; ++i) {
    progress->update(i, kText);
    screen.now += 0.001;
  }
  EXPECT_LE(count_of(screen.written(), "\r"), 101);
  EXPECT_GE(count_of(screen.written(), "\r"), 90);
}

TEST(Progress, MessagesStayAboveTheBar) {
  Screen screen(80);
  auto progress = screen.start(10);
  progress->message("before");
  EXPECT_EQ(screen.written(), "before\n");
  progress->update(3, "loss 1");
  progress->message("step 3: top-1 0.5\x1b[2J\nbroken");
  EXPECT_THAT(screen.written(), HasSubstr("\r\x1b[Kstep 3: top-1 0.5 [2J broken\n\r\x1b[K["));
  EXPECT_THAT(screen.last_line(), HasSubstr("30 %   3/10  loss 1"));
}

TEST(Progress, EndsItsLineWhenTheWorkFails) {
  Screen screen(80);
  screen.start(10)->update(3, "loss 1");
  EXPECT_THAT(screen.written(), EndsWith("loss 1\n"));
}

TEST(Progress, InAFileHasALinePerTenthAndHalfMinute) {
  Screen screen(0);
  auto progress = screen.start(1000);
  for (int64_t done = 0; done <= 1000; ++done) {  // a tenth takes 50 seconds
    progress->update(done, kText);
    screen.now += 0.5;
  }
  progress->message("evaluated");
  progress->finish();
  const std::string written = screen.written();
  EXPECT_EQ(count_of(written, "\n"), 12);
  EXPECT_THAT(written, HasSubstr(" 10 %    100/1,000  loss 0.3121  top-1 94.1 %  1,840 samples/s  "
                                 "61 % of SGEMM  7 min 30 s left\n"));
  EXPECT_THAT(written, EndsWith("100 %  1,000/1,000  loss 0.3121  top-1 94.1 %  1,840 samples/s  "
                                "61 % of SGEMM  in 8 min 21 s\n"));
  for (const char letter : written) EXPECT_TRUE(letter == '\n' || letter >= ' ');
}

TEST(Progress, InAFileHasOneLineForShortWork) {
  Screen screen(0);
  auto progress = screen.start(100);
  for (int64_t done = 0; done <= 100; ++done) {
    progress->update(done, "");
    screen.now += 0.1;
  }
  progress->finish();
  progress->finish();
  progress->update(1, "");
  EXPECT_EQ(screen.written(), "100 %  100/100  in 10 s\n");
}

TEST(Progress, OfResumedWorkIgnoresEarlierSteps) {
  Screen screen(80);
  auto progress = screen.start(1000);
  progress->update(900, "");
  EXPECT_THAT(screen.last_line(), Not(HasSubstr("left")));
  screen.now += 10;
  progress->update(910, "");
  EXPECT_THAT(screen.last_line(), HasSubstr("1 min 30 s left"));
}

TEST(Progress, FollowsAChangeOfSpeedSmoothly) {
  Screen screen(80);
  auto progress = screen.start(10000);
  const auto run = [&](int64_t from, int64_t to, double seconds) {
    for (int64_t done = from; done < to; ++done) {
      progress->update(done, "");
      screen.now += seconds;
    }
    progress->update(to, "");
  };
  run(0, 1000, 0.1);
  EXPECT_THAT(screen.last_line(), HasSubstr("15 min left"));
  run(1000, 1001, 2.0);  // one slow step
  EXPECT_THAT(screen.last_line(), HasSubstr("15 min left"));
  run(1001, 3000, 0.2);  // from now on half as fast
  EXPECT_THAT(screen.last_line(), HasSubstr("22 min left"));
}

TEST(Progress, ExcludesSetupFromTheRate) {
  Screen screen(80);
  auto progress = screen.start(1000);
  screen.now += 600;
  progress->update(0, "");
  screen.now += 10;  // the first step is slow
  progress->update(1, "");
  screen.now += 90;
  progress->update(91, "");
  EXPECT_THAT(screen.last_line(), HasSubstr("15 min left"));
}

TEST(Progress, IncludesPausesInTheRate) {
  Screen screen(80);
  auto progress = screen.start(4000);
  for (int64_t done = 0; done <= 2000; ++done) {
    if (done % 100 == 1) screen.now += 30;  // an evaluation after every hundredth
    progress->update(done, "");
    if (done < 2000) screen.now += 1;
  }
  EXPECT_THAT(screen.last_line(), HasSubstr("42 min left"));
  screen.now += 31;
  progress->update(2001, "");
  EXPECT_THAT(screen.last_line(), HasSubstr("43 min left"));
}

TEST(Progress, FollowsTheWidthOfTheTerminal) {
  setenv("TERM", "xterm", 1);
  const int control = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_TRUE(control >= 0 && grantpt(control) == 0 && unlockpt(control) == 0);
  std::FILE* terminal = std::fopen(ptsname(control), "w");
  ASSERT_NE(terminal, nullptr);
  const Display display = display_of(terminal);
  for (const unsigned short columns : {97, 131}) {
    const winsize size{24, columns, 0, 0};
    ASSERT_EQ(ioctl(control, TIOCSWINSZ, &size), 0);
    EXPECT_EQ(display.columns(), columns);
  }
  setenv("TERM", "dumb", 1);
  EXPECT_EQ(display_of(terminal).columns(), 0);
  std::fclose(terminal);
  close(control);
}

TEST(Progress, AFileHasNoWidth) {
  std::FILE* file = std::tmpfile();
  EXPECT_EQ(display_of(file).columns(), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace translution::cli
