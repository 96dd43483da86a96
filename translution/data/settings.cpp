#include "translution/data/settings.h"

#include <algorithm>
#include <iterator>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

using namespace fields;
using O = DataOptions;
using F = Setting<DataOptions>;

constexpr size_t kPlacementsForUsers = 5;  // "fresh" is a separate setting
constexpr Named<bool> kHowOften[] = {{false, "fixed", ""}, {true, "fresh", ""}};

constexpr const char* kNone = "none";

// "static,dynamic", or "none"
Kind<std::vector<Placement>> placements() {
  const auto read = [](const SettingValue& value) {
    std::vector<Placement> placements;
    if (value.text == kNone) return placements;
    for (const auto& word : value.words()) {
      const SettingValue one{value.name, word};
      one.check_listed(names_of(kPlacements), kPlacementsForUsers);
      placements.push_back(one.one_of(kPlacements));
    }
    return placements;
  };
  const auto text = [](const std::vector<Placement>& placements) {
    std::string names;
    for (const Placement placement : placements)
      names += (names.empty() ? "" : ",") + std::string(name_of(kPlacements, placement));
    return names.empty() ? std::string(kNone) : names;
  };
  return {FieldType::word, "static,dynamic,…|none", read, text};
}

// Rows and columns, or 0 for the size of the images.
Kind<std::vector<int64_t>> canvas() {
  auto kind = sides();
  kind.read = [](const SettingValue& value) {
    return value.text == "0" ? std::vector<int64_t>() : value.sides();
  };
  kind.text = [](const std::vector<int64_t>& sides) { return sides.empty() ? "0" : times(sides); };
  return kind;
}

bool is_image_folder(const DataOptions& options) {
  return kind_of(options.data) == DataKind::images;
}

bool is_points_in_files(const DataOptions& options) {
  return kind_of(options.data) == DataKind::points;
}

bool is_files(const DataOptions& options) {
  return is_image_folder(options) || is_points_in_files(options);
}

// Refuses the setting for other kinds of data. "data" precedes it in the table, so the kind is
// already set.
F refused_unless(bool (*concerned)(const DataOptions&), const char* expected, F setting) {
  setting.unset = setting.text(DataOptions());
  setting.set = [=, set = setting.set](DataOptions& options, const SettingValue& value) {
    require(concerned(options), value.name, ": expected ", expected, ", got ", options.data);
    set(options, value);
  };
  setting.text = [=, text = setting.text](const DataOptions& options) {
    return concerned(options) ? text(options) : "";
  };
  return setting;
}

F only_for_folders(const F& setting) {
  return refused_unless(is_image_folder, "image folders (--data images:DIR)", setting);
}

F only_for_points(const F& setting) {
  return refused_unless(is_points_in_files, "points in files (--data points:DIR)", setting);
}

}  // namespace

DataKind kind_of(const std::string& data) {
  return parse_name("kind of data", kDataKinds, data.substr(0, data.find(':')));
}

bool on_canvas(const DataOptions& options) {
  constexpr DataKind kOnCanvas[] = {DataKind::digits, DataKind::mnist, DataKind::idx,
                                    DataKind::digits_points, DataKind::mnist_points};
  const auto* const end = std::end(kOnCanvas);
  return std::find(std::begin(kOnCanvas), end, kind_of(options.data)) != end;
}

const Settings<DataOptions>& data_settings() {
  static const Settings<DataOptions> groups = {
      {"Data",
       {F("data", &O::data, any_text("KIND[:WHERE]"),
          "digits, digits:N, mnist:DIR, idx:DIR, images:DIR, digits-points, mnist-points:DIR, "
          "points:DIR, tokens:DIR or text"),
        F("canvas", &O::canvas, canvas(),
          "canvas size for digits, e.g. 84 or 84x60; 0: the digit's size")
            .only_for(on_canvas),
        F("train-on", &O::train_on, one_of(kPlacements, kPlacementsForUsers),
          "placement of training digits on the canvas; scaled, rotated and clutter: of points")
            .only_for(on_canvas),
        F("placement", &O::fresh, one_of(kHowOften),
          "dynamic training placements: fixed per image, or fresh in every epoch")
            .only_for(on_canvas),
        F("eval-on", &O::eval_on, placements(),
          "placements of evaluation digits; none: only the samples of --hold-out")
            .only_for(on_canvas),
        F("train-limit", &O::train_limit, whole(0),
          "maximum training samples, spread over the classes if data is sorted by class; 0: all"),
        F("eval-limit", &O::eval_limit, whole(0),
          "maximum evaluation samples, spread over the classes if data is sorted by class; 0: all"),
        F("hold-out", &O::hold_out, whole(0),
          "training images held out for validation, evenly over the classes; they then choose the "
          "best checkpoint")
            .left_out_by_default()
            .before_it("0"),
        only_for_folders(F("augment", &O::augment, one_of(kAugments),
                           "augmentation of training images from folders")
                             .before_it("none")),
        only_for_points(F("rotate", &O::rotation, one_of(kRotations),
                          "rotation of training clouds from files; upright: about the third axis")),
        only_for_points(F("max-points", &O::max_points, whole(0),
                          "maximum points of a cloud; larger ones keep random points; 0: all")),
        F("max-broken", &O::max_broken, real(0, 0.5),
          "largest share of broken files in a folder, 0 to 0.5")
            .only_for(is_files)
            .free_on_resume()}}};
  return groups;
}

}  // namespace translution
