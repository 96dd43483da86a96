#include "picture_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "handlers.h"
#include "http.h"
#include "translution/core/error.h"
#include "translution/io/strict_json.h"

namespace translution::serve {

using namespace detail;

namespace {

constexpr int kDepth = 4;  // of {"image": {"pixels": [...]}}
constexpr const char* kSchema =
    R"({"image": {"rows": R, "cols": C, "pixels": [...]}, "place": [row, col]})";

template <typename... Args>
void expect(bool ok, const Args&... message) {
  if (!ok) throw Refusal(kBadRequest, join(message...));
}

nlohmann::json parse(const std::string& body) {
  if (body.size() > kMostJsonBytes)
    throw Refusal(kTooLarge, join("expected at most ", kMostJsonBytes, " bytes of JSON, got ",
                                  body.size(), "; send the image as PNG"));
  try {
    check_strict_json(body, kDepth);
    return nlohmann::json::parse(body);
  } catch (const std::exception& error) {
    throw Refusal(kBadRequest, join("expected JSON or a JPEG or PNG file: ", error.what()));
  }
}

// The keys of an object are among those named; "image" and the like are required elsewhere.
void expect_keys(const nlohmann::json& object, std::initializer_list<const char*> names) {
  expect(object.is_object(), "expected ", kSchema);
  for (const auto& [key, value] : object.items())
    expect(std::find(names.begin(), names.end(), key) != names.end(), "unknown key '", key,
           "'; expected ", kSchema);
}

int64_t whole(const nlohmann::json& value, const char* name, int64_t least, int64_t most) {
  expect(value.is_number_integer(), name, ": expected a whole number, got ", value.type_name());
  const auto number = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{1} << 40
                          ? int64_t{1} << 40
                          : value.get<int64_t>();
  expect(least <= number && number <= most, name, ": expected ", least, " to ", most, ", got ",
         number);
  return number;
}

const nlohmann::json& member(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  expect(found != object.end(), "'", name, "' is missing; expected ", kSchema);
  return *found;
}

RgbImage read_image(const nlohmann::json& json, const PictureFormat& format) {
  expect_keys(json, {"rows", "cols", "pixels"});
  RgbImage image;
  image.rows = static_cast<int>(whole(member(json, "rows"), "rows", 1, format.rows));
  image.cols = static_cast<int>(whole(member(json, "cols"), "cols", 1, format.cols));
  const auto& pixels = member(json, "pixels");
  const int64_t count = format.channels * image.rows * image.cols;
  expect(pixels.is_array() && pixels.size() == static_cast<size_t>(count), "pixels: expected ",
         count, " numbers for ", image.rows, "x", image.cols, " pixels of ", format.channels,
         format.channels == 1 ? " channel" : " channels", ", got ",
         pixels.is_array() ? std::to_string(pixels.size()) : pixels.type_name());
  image.pixels.reserve(3 * image.rows * image.cols);
  for (const auto& pixel : pixels) {
    const auto value = static_cast<uint8_t>(whole(pixel, "pixels", 0, 255));
    image.pixels.insert(image.pixels.end(), format.channels == 1 ? 3 : 1, value);
  }
  return image;
}

PlacedImage read_json(const std::string& body, const PictureFormat& format) {
  const auto json = parse(body);
  expect_keys(json, {"image", "place"});
  PlacedImage placed{read_image(member(json, "image"), format)};
  const int64_t free_rows = format.rows - placed.image.rows;
  const int64_t free_cols = format.cols - placed.image.cols;
  placed.row = free_rows / 2, placed.col = free_cols / 2;
  if (const auto at = json.find("place"); at != json.end()) {
    expect(at->is_array() && at->size() == 2, "place: expected [row, col]");
    placed.row = whole((*at)[0], "place, row", 0, free_rows);
    placed.col = whole((*at)[1], "place, col", 0, free_cols);
  }
  return placed;
}

}  // namespace

PlacedImage read_picture(const std::string& body, const PictureFormat& format) {
  expect(!body.empty(), "expected a JPEG or PNG file or JSON in the body, got nothing");
  const size_t first = body.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && body[first] == '{') return read_json(body, format);
  try {
    return {fit_picture(body, "image", format)};
  } catch (const std::exception& error) {
    throw Refusal(kBadRequest, error.what());
  }
}

RgbImage place(const PlacedImage& placed, const PictureFormat& format) {
  RgbImage canvas{static_cast<int>(format.rows), static_cast<int>(format.cols), {}};
  canvas.pixels.resize(size_t{3} * canvas.rows * canvas.cols);
  const auto& image = placed.image;
  for (int row = 0; row < image.rows; ++row)
    std::copy_n(image.pixels.begin() + size_t{3} * row * image.cols, 3 * image.cols,
                canvas.pixels.begin() + 3 * ((placed.row + row) * canvas.cols + placed.col));
  return canvas;
}

}  // namespace translution::serve
