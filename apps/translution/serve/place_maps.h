#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <vector>

#include "models.h"
#include "picture_request.h"

namespace translution::serve {

/// All places of a rows x cols grid: every eighth in both directions first, then every fourth,
/// second and single one, so that any first part of the list covers the grid.
std::vector<int32_t> coarse_first(int64_t rows, int64_t cols);

/// The maps that pages look at. A page asks again and again for the same image, and gets the cells
/// that are new; a map that nobody asks for any more is not continued, so a changed digit cancels
/// the map of the one before.
class PlaceMaps {
 public:
  using Clock = std::chrono::steady_clock;

  /// The map of the image for a run in the state `version`, without the first `known` cells.
  PlaceMap ask(size_t run, int64_t version, const RgbImage& image, const PictureFormat& format,
               int64_t known, Clock::time_point now = Clock::now());

  /// Places to compute next, of the least complete of the maps that were asked for lately.
  struct Batch {
    size_t run = 0;
    int64_t id = 0;  ///< of the map
    PictureFormat format;
    std::vector<int32_t> places;
    std::vector<PlacedImage> images;  ///< one for each place
  };
  std::optional<Batch> next(size_t most, Clock::time_point now = Clock::now());
  void add(const Batch& batch, const std::vector<MapCell>& cells);

 private:
  struct Map {
    size_t run;
    int64_t version, id;
    RgbImage image;
    PictureFormat format;
    int64_t rows, cols;
    std::vector<int32_t> order;
    std::vector<MapCell> cells;
    Clock::time_point asked;
  };
  std::mutex mutex_;
  std::list<Map> maps_;  // the one that was asked for last is in front
  int64_t next_id_ = 0;
};

}  // namespace translution::serve
