#include "apps/translution/serve/handlers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/serve/fake_models.h"

namespace translution::serve {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kPixel = R"({"image": {"rows": 1, "cols": 1, "pixels": [255]}, "place": )";

Request get(const std::string& path, std::map<std::string, std::string> parameters = {}) {
  return {"GET", path, std::move(parameters), "localhost:8765", "", ""};
}

Request post(const std::string& path, const std::string& body,
             std::map<std::string, std::string> parameters = {}) {
  return {"POST", path, std::move(parameters), "127.0.0.1:8765", "", body};
}

class Handlers : public ::testing::Test {
 protected:
  Response ask(const Request& request) { return respond(request, {"lab.example"}, models_); }
  Json answer(const Request& request) {
    const auto response = ask(request);
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body);
  }
  void expect_refused(const Request& request, int status, const std::string& message) {
    const auto response = ask(request);
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_THAT(Json::parse(response.body).at("error").get<std::string>(), HasSubstr(message));
  }

  FakeModels models_;
};

TEST_F(Handlers, PredictPlacesTheImageAndSortsTheClasses) {
  const auto light = answer(post("/predict", std::string(kPixel) + "[0, 0]}", {{"run", "second"}}));
  ASSERT_EQ(light.at("results").size(), 1);
  EXPECT_EQ(light["results"][0]["run"], "second");
  EXPECT_EQ(light["results"][0]["classes"][0], Json({{"class", "light"}, {"probability", 1.0}}));
  const auto dark = answer(post("/predict", std::string(kPixel) + "[5, 3]}", {{"run", "0"}}));
  EXPECT_EQ(dark["results"][0]["classes"][0]["class"], "dark");
}

TEST_F(Handlers, WithoutAPlaceTheImageIsInTheMiddle) {
  const auto result = answer(
      post("/predict", R"({"image": {"rows": 6, "cols": 4, "pixels": [255,0,0,0,0,0,0,0,0,0,0,0,
                       0,0,0,0,0,0,0,0,0,0,0,0]}})",
           {{"run", "0"}}));
  EXPECT_EQ(result["results"][0]["classes"][0]["class"], "light");
}

TEST_F(Handlers, ARunWithoutAModelIsAConflict) {
  expect_refused(post("/predict", std::string(kPixel) + "[0, 0]}"), kConflict,
                 "third: no checkpoint yet");
  EXPECT_EQ(answer(get("/api/log", {{"run", "third"}})).at("step"), 3);
}

TEST_F(Handlers, WrongBodiesAreRefusedWithWhatWasExpected) {
  const std::pair<const char*, const char*> bodies[] = {
      {"", "expected a JPEG or PNG file or JSON in the body, got nothing"},
      {"text", "image: "},
      {"\x89PNG\r\n\x1a\nrest", "image: "},
      {"{", "expected JSON or a JPEG or PNG file: "},
      {"{}", "'image' is missing; expected {\"image\""},
      {R"({"image": {"rows": 1, "rows": 2}})", "expected JSON"},
      {R"({"image": [[[[[[1]]]]]]})", "expected JSON"},
      {R"({"image": 1})", "expected {\"image\""},
      {R"({"picture": 1})", "unknown key 'picture'"},
      {R"({"image": {"rows": 7, "cols": 1, "pixels": []}})", "rows: expected 1 to 6, got 7"},
      {R"({"image": {"rows": 1e3, "cols": 1, "pixels": []}})", "rows: expected a whole number"},
      {R"({"image": {"rows": 18446744073709551615, "cols": 1, "pixels": []}})", "rows: expected 1"},
      {R"({"image": {"rows": 1, "cols": 2, "pixels": [1]}})",
       "pixels: expected 2 numbers for 1x2 pixels of 1 channel, got 1"},
      {R"({"image": {"rows": 1, "cols": 1, "pixels": "1"}})", "got string"},
      {R"({"image": {"rows": 1, "cols": 1, "pixels": [256]}})",
       "pixels: expected 0 to 255, got 256"},
      {R"({"image": {"rows": 1, "cols": 1, "pixels": [1]}, "place": [6, 0]})",
       "place, row: expected 0 to 5, got 6"},
      {R"({"image": {"rows": 1, "cols": 1, "pixels": [1]}, "place": 3})",
       "place: expected [row, col]"},
  };
  for (const auto& [body, message] : bodies)
    expect_refused(post("/predict", body, {{"run", "0"}}), kBadRequest, message);
  expect_refused(post("/predict", "{" + std::string(kMostJsonBytes, ' '), {{"run", "0"}}),
                 kTooLarge, "send the image as PNG");
  expect_refused(post("/predict", std::string(kMostBytes + 1, 'a')), kTooLarge, "expected at most");
}

TEST_F(Handlers, ParametersAreCheckedAndPathsAreThoseOfTheList) {
  expect_refused(post("/predict", "{}", {{"run", "../first"}}), kNotFound,
                 "no run '../first'; there are first, second, third");
  expect_refused(post("/api/attention", "{}", {{"query", "6"}}), kBadRequest,
                 "query: expected -1 to 5, got 6");
  expect_refused(post("/api/attention", "{}", {{"query", "1x"}}), kBadRequest, "query");
  for (const char* path : {"/etc/passwd", "/../CMakeLists.txt", "/page/main.js", "//", ""})
    expect_refused(get(path), kNotFound, "nothing is here");
  expect_refused(get("/predict"), kWrongMethod, "/predict: expected POST");
  expect_refused(post("/api/runs", ""), kWrongMethod, "/api/runs: expected GET");
}

TEST_F(Handlers, OnlyTheServersOwnPageMayAsk) {
  for (const char* host : {"localhost", "localhost:1", "127.0.0.1:8765", "[::1]:8765",
                           "10.0.0.7:80", "lab.example:8765"})
    EXPECT_EQ(ask({"GET", "/api/runs", {}, host, "", ""}).status, 200) << host;
  for (const char* host :
       {"", "evil.example", "localhost.evil.example:8765", "[", "127.0.0.1.evil"})
    expect_refused({"GET", "/", {}, host, "", ""}, kForbidden, "expected localhost, an address");
  EXPECT_EQ(ask({"GET", "/", {}, "localhost:8765", "http://localhost:8765", ""}).status, 200);
  for (const char* origin :
       {"http://evil.example", "null", "http://localhost:9", "https://localhost:8765"})
    expect_refused({"GET", "/", {}, "localhost:8765", origin, ""}, kForbidden, "another origin");
}

TEST_F(Handlers, OtherQuestionsHaveTheirAnswers) {
  const auto runs = answer(get("/api/runs")).at("runs");
  EXPECT_EQ(runs[0].at("image"), Json({6, 4}));
  EXPECT_EQ(runs[2], Json({{"name", "third"}, {"problem", "no checkpoint yet"}}));
  const auto body = std::string(kPixel) + "[0, 0]}";
  const auto attention = answer(post("/api/attention", body, {{"query", "4"}}));
  EXPECT_EQ(attention.at("weights")[1][0], Json({4.0, 0.0, 0.0, 0.0, 0.0, 0.1235}));
  const auto map = answer(post("/api/map", body, {{"known", "1"}}));
  EXPECT_EQ(map.at("cells"), Json({{1, 0, 0.5}}));
  EXPECT_EQ(map.at("rows"), 6);
  EXPECT_EQ(answer(get("/api/offsets")).at("tables")[0].at("values"), Json({0.5, 1.0}));
  EXPECT_EQ(
      answer(get("/api/sample", {{"class", "light"}, {"index", "2"}})).at("image").at("pixels"),
      Json({7}));
  EXPECT_EQ(answer(post("/api/picture", body)).at("image").at("pixels").size(), 24);
  EXPECT_EQ(answer(get("/api/log")).at("series")[0].at("points"), Json({{3, 0.5}}));
}

TEST_F(Handlers, BusyModelsAnswer503) {
  models_.busy = true;
  expect_refused(post("/predict", std::string(kPixel) + "[0, 0]}", {{"run", "0"}}), kBusy, "busy");
}

TEST_F(Handlers, ThePageIsBuiltInAndMayLoadItselfOnly) {
  for (const char* path : {"/", "/main.js", "/look.css", "/chart.css", "/icon.svg"})
    EXPECT_FALSE(ask(get(path)).body.empty()) << path;
  EXPECT_THAT(ask(get("/")).body, ::testing::Not(HasSubstr("http")));
  std::string policy;
  for (const auto& [name, value] : common_headers())
    if (name == "Content-Security-Policy") policy = value;
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
}

}  // namespace
}  // namespace translution::serve
