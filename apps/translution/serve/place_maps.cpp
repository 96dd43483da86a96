#include "place_maps.h"

#include <algorithm>

namespace translution::serve {
namespace {

constexpr size_t kMostMaps = 16;
constexpr std::chrono::seconds kLately{2};
constexpr int64_t kCoarsest = 8;

}  // namespace

std::vector<int32_t> coarse_first(int64_t rows, int64_t cols) {
  std::vector<int32_t> order;
  order.reserve(rows * cols);
  for (int64_t step = kCoarsest; step >= 1; step /= 2)
    for (int64_t row = 0; row < rows; row += step)
      for (int64_t col = 0; col < cols; col += step) {
        const bool done = step < kCoarsest && row % (2 * step) == 0 && col % (2 * step) == 0;
        if (!done) order.push_back(static_cast<int32_t>(row * cols + col));
      }
  return order;
}

PlaceMap PlaceMaps::ask(size_t run, int64_t version, const RgbImage& image,
                        const PictureFormat& format, int64_t known, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(maps_.begin(), maps_.end(), [&](const Map& map) {
    return map.run == run && map.version == version && map.image.rows == image.rows &&
           map.image.pixels == image.pixels;
  });
  if (found != maps_.end()) {
    maps_.splice(maps_.begin(), maps_, found);
  } else {
    const int64_t rows = format.rows - image.rows + 1, cols = format.cols - image.cols + 1;
    maps_.push_front(
        {run, version, next_id_++, image, format, rows, cols, coarse_first(rows, cols), {}, now});
    if (maps_.size() > kMostMaps) maps_.pop_back();
  }
  Map& map = maps_.front();
  map.asked = now;
  PlaceMap part{map.rows, map.cols, static_cast<int64_t>(map.cells.size()), {}};
  if (0 <= known && known < part.done)
    part.cells.assign(map.cells.begin() + known, map.cells.end());
  return part;
}

std::optional<PlaceMaps::Batch> PlaceMaps::next(size_t most, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const Map* least = nullptr;
  for (const auto& map : maps_) {
    const bool open = now - map.asked < kLately && map.cells.size() < map.order.size();
    if (open && (least == nullptr || map.cells.size() < least->cells.size())) least = &map;
  }
  if (least == nullptr) return std::nullopt;
  Batch batch{least->run, least->id, least->format, {}, {}};
  const size_t begin = least->cells.size();
  const size_t end = std::min(least->order.size(), begin + most);
  for (size_t p = begin; p < end; ++p) {
    const int32_t place = least->order[p];
    batch.places.push_back(place);
    batch.images.push_back({least->image, place / least->cols, place % least->cols});
  }
  return batch;
}

void PlaceMaps::add(const Batch& batch, const std::vector<MapCell>& cells) {
  const std::lock_guard lock(mutex_);
  for (auto& map : maps_)
    if (map.id == batch.id) map.cells.insert(map.cells.end(), cells.begin(), cells.end());
}

}  // namespace translution::serve
