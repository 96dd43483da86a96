#include "handlers.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "../json_text.h"
#include "assets.h"
#include "picture_request.h"
#include "translution/core/error.h"
#include "translution/core/settings.h"

namespace translution::serve {

using namespace detail;
using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kListed = 10;  // likeliest classes of a prediction

// ------------------------------------------------------------------------------------- requests

int64_t number(const Request& request, const char* name, int64_t fallback, int64_t least,
               int64_t most) {
  const auto found = request.parameters.find(name);
  if (found == request.parameters.end()) return fallback;
  try {
    return SettingValue{name, found->second}.number(least, most);
  } catch (const std::invalid_argument& error) {
    throw Refusal(kBadRequest, error.what());
  }
}

// The runs that `run=` selects, by number or by name; without it, all.
std::vector<size_t> selected(const Request& request, const std::vector<RunFacts>& runs) {
  std::vector<size_t> indices;
  const auto found = request.parameters.find("run");
  for (size_t i = 0; i < runs.size(); ++i)
    if (found == request.parameters.end() || found->second == std::to_string(i) ||
        found->second == runs[i].name)
      indices.push_back(i);
  if (!indices.empty()) return indices;
  std::string names;
  for (const auto& run : runs) names += (names.empty() ? "" : ", ") + run.name;
  throw Refusal(kNotFound, join("no run '", found == request.parameters.end() ? "" : found->second,
                                "'; there are ", names));
}

struct Chosen {
  size_t index;
  RunFacts facts;
};

// The one run of a request; 0 is the default. With a model, unless any run will do.
Chosen chosen(const Request& request, Models& models, bool needs_model = true) {
  const auto runs = models.runs();
  const size_t index = selected(request, runs).front();
  if (needs_model && !runs[index].problem.empty())
    throw Refusal(kConflict, join(runs[index].name, ": ", runs[index].problem));
  return {index, runs[index]};
}

// -------------------------------------------------------------------------------------- answers

// A number with four digits behind the point, which print short.
double rounded(double value) { return std::round(value * 1e4) / 1e4; }

Json image_json(const RgbImage& image, int64_t channels) {
  auto pixels = Json::array();
  for (size_t p = 0; p < image.pixels.size(); p += channels == 1 ? 3 : 1)
    pixels.push_back(image.pixels[p]);
  return {{"rows", image.rows}, {"cols", image.cols}, {"pixels", pixels}};
}

Json facts_json(const RunFacts& run) {
  Json json{{"name", run.name}, {"problem", run.problem}};
  if (!run.problem.empty()) return json;
  json.update({{"model", run.model},
               {"method", run.method},
               {"step", run.step},
               {"parameters", run.parameters},
               {"classes", run.classes},
               {"channels", run.format.channels},
               {"image", {run.format.rows, run.format.cols}},
               {"grid", {run.rows, run.cols}},
               {"cls", run.cls},
               {"layers", run.layers},
               {"heads", run.heads}});
  return json;
}

Json runs_answer(const Request&, Models& models) {
  auto runs = Json::array();
  for (const auto& run : models.runs()) runs.push_back(facts_json(run));
  return {{"runs", runs}};
}

Json prediction_json(const RunFacts& run, const std::vector<float>& probabilities) {
  std::vector<size_t> order(probabilities.size());
  for (size_t c = 0; c < order.size(); ++c) order[c] = c;
  const size_t listed = std::min(kListed, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(listed), order.end(),
                    [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
  auto classes = Json::array();
  for (size_t c = 0; c < listed; ++c)
    classes.push_back(
        {{"class", run.classes.at(order[c])}, {"probability", probabilities[order[c]]}});
  return {{"run", run.name}, {"step", run.step}, {"classes", classes}};
}

Json predict_answer(const Request& request, Models& models) {
  const auto runs = models.runs();
  auto results = Json::array();
  for (const size_t index : selected(request, runs)) {
    const auto& run = runs[index];
    if (!run.problem.empty()) throw Refusal(kConflict, join(run.name, ": ", run.problem));
    const auto picture = place(read_picture(request.body, run.format), run.format);
    results.push_back(prediction_json(run, models.predict(index, picture)));
  }
  return {{"results", results}};
}

Json maps_json(const std::vector<std::vector<std::vector<float>>>& maps) {
  auto json = Json::array();
  for (const auto& layer : maps) {
    json.push_back(Json::array());
    for (const auto& head : layer) {
      auto values = Json::array();
      for (const float value : head) values.push_back(rounded(value));
      json.back().push_back(std::move(values));
    }
  }
  return json;
}

Json attention_answer(const Request& request, Models& models) {
  const auto [index, run] = chosen(request, models);
  const int64_t query = number(request, "query", -1, -1, run.rows * run.cols - 1);
  const auto picture = place(read_picture(request.body, run.format), run.format);
  const auto maps = models.attend(index, picture, query);
  Json json{{"query", query}, {"weights", maps_json(maps.weights)}};
  if (!maps.relative.empty())
    json.update({{"shared", maps_json(maps.shared)}, {"relative", maps_json(maps.relative)}});
  return json;
}

Json map_answer(const Request& request, Models& models) {
  const auto [index, run] = chosen(request, models);
  const int64_t known = number(request, "known", 0, 0, int64_t{1} << 40);
  const auto placed = read_picture(request.body, run.format);
  const auto map = models.map(index, placed.image, known);
  auto cells = Json::array();
  for (const auto& cell : map.cells)
    cells.push_back({cell.place, cell.best, rounded(cell.probability)});
  return {{"step", run.step},
          {"rows", map.rows},
          {"cols", map.cols},
          {"done", map.done},
          {"cells", cells}};
}

Json offsets_answer(const Request& request, Models& models) {
  auto tables = Json::array();
  for (const auto& norms : models.norms(chosen(request, models).index)) {
    auto values = Json::array();
    for (const double value : norms.values)
      values.push_back(std::isfinite(value) ? Json(rounded(value)) : Json());
    auto others = Json::object();
    for (const auto& [name, value] : norms.others) others[name] = rounded(value);
    tables.push_back({{"table", norms.table},
                      {"rows", norms.rows},
                      {"cols", norms.cols},
                      {"values", values},
                      {"others", others}});
  }
  return {{"tables", tables}};
}

Json sample_answer(const Request& request, Models& models) {
  const auto channels = chosen(request, models).facts.format.channels;
  const auto wanted = request.parameters.find("class");
  const auto sample = models.sample(
      number(request, "index", 0, 0, int64_t{1} << 40),
      wanted == request.parameters.end() ? std::nullopt : std::optional(wanted->second));
  return {{"image", image_json(sample.image, channels)},
          {"label", sample.label},
          {"index", sample.index},
          {"count", sample.count}};
}

// A file as the pixels that a run sees.
Json picture_answer(const Request& request, Models& models) {
  const auto run = chosen(request, models).facts;
  return {{"image", image_json(place(read_picture(request.body, run.format), run.format),
                               run.format.channels)}};
}

Json log_answer(const Request& request, Models& models) {
  const auto log = models.log(chosen(request, models, /*needs_model=*/false).index);
  auto series = Json::array();
  for (const auto& one : log.series)
    series.push_back({{"metric", one.metric}, {"split", one.split}, {"points", one.points}});
  return {{"step", log.step},
          {"steps", log.steps},
          {"running", log.running},
          {"samples_per_second", rounded(log.samples_per_second)},
          {"seconds_left", rounded(log.seconds_left)},
          {"series", series}};
}

// -------------------------------------------------------------------------------------- routing

struct Route {
  const char *method, *path;
  Json (*answer)(const Request&, Models&);
};

constexpr Route kRoutes[] = {
    {"GET", "/api/runs", runs_answer},
    {"POST", "/predict", predict_answer},
    {"POST", "/api/attention", attention_answer},
    {"POST", "/api/map", map_answer},
    {"GET", "/api/offsets", offsets_answer},
    {"GET", "/api/sample", sample_answer},
    {"POST", "/api/picture", picture_answer},
    {"GET", "/api/log", log_answer},
};

// "127.0.0.1", "localhost" or "::1" of "127.0.0.1:8765", "[::1]:8765".
std::string host_name(const std::string& host) {
  if (!host.empty() && host.front() == '[') return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

bool is_address(const std::string& host) {
  const bool v4 = host.find_first_not_of("0123456789.") == std::string::npos;
  const bool v6 = host.find(':') != std::string::npos &&
                  host.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
  return !host.empty() && (v4 || v6);
}

void check_sender(const Request& request, const Site& site) {
  const auto name = host_name(request.host);
  if (name != "localhost" && name != site.host && !is_address(name))
    throw Refusal(kForbidden, join("the host is '", name, "'; expected localhost, an address or ",
                                   "the name in --host"));
  if (!request.origin.empty() && request.origin != "http://" + request.host)
    throw Refusal(kForbidden, "pages of another origin may not ask");
}

Response answer(const Request& request, Models& models) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (const auto* asset = find_asset(request.path); asset != nullptr && reads)
    return {200, asset->type, asset->text};
  if (request.body.size() > kMostBytes)
    throw Refusal(kTooLarge,
                  join("expected at most ", kMostBytes, " bytes, got ", request.body.size()));
  for (const auto& route : kRoutes) {
    if (request.path != route.path) continue;
    if (request.method != route.method)
      throw Refusal(kWrongMethod, join(route.path, ": expected ", route.method));
    return {200, "application/json", cli::json_text(route.answer(request, models), -1)};
  }
  throw Refusal(kNotFound, "nothing is here; see POST /predict in the documentation");
}

}  // namespace

Response refused(int status, const std::string& message) {
  return {status, "application/json",
          cli::json_text(Json{{"error", message.substr(0, message.find('\n'))}}, -1)};
}

Response respond(const Request& request, const Site& site, Models& models) {
  try {
    check_sender(request, site);
    return answer(request, models);
  } catch (const Refusal& refusal) {
    return refused(refusal.status(), refusal.what());
  } catch (const std::exception& error) {
    return refused(kFailed, error.what());
  }
}

const std::vector<std::pair<std::string, std::string>>& common_headers() {
  static const std::vector<std::pair<std::string, std::string>> headers{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
       "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-store"}};
  return headers;
}

}  // namespace translution::serve
