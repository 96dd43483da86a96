#include "translution/data/settings.h"

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

using namespace fields;
using O = DataOptions;
using F = Setting<DataOptions>;

constexpr size_t kPlacementsForUsers = 2;  // "fresh" has a setting of its own
constexpr Named<bool> kHowOften[] = {{false, "fixed", ""}, {true, "fresh", ""}};

constexpr const char* kNone = "none";

// "static,dynamic", or "none"
Kind<std::vector<Placement>> placements() {
  const auto read = [](const SettingValue& value) {
    std::vector<Placement> places;
    if (value.text == kNone) return places;
    for (const auto& word : value.words()) {
      const SettingValue one{value.name, word};
      one.check_listed(names_of(kPlacements), kPlacementsForUsers);
      places.push_back(one.one_of(kPlacements));
    }
    return places;
  };
  const auto text = [](const std::vector<Placement>& places) {
    std::string names;
    for (const Placement place : places)
      names += (names.empty() ? "" : ",") + std::string(name_of(kPlacements, place));
    return names.empty() ? std::string(kNone) : names;
  };
  return {FieldType::word, "static,dynamic|none", read, text};
}

// Sides, or 0 for the images' own.
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

// Other data has no such setting, and refuses it. "data" stands before it in the table, so that the
// kind is known here.
F only_for_folders(F setting) {
  setting.unset = setting.text(DataOptions());
  setting.set = [set = setting.set](DataOptions& options, const SettingValue& value) {
    require(is_image_folder(options), value.name,
            " is for image folders: expected --data images:DIR, got ", options.data);
    set(options, value);
  };
  setting.text = [text = setting.text](const DataOptions& options) {
    return is_image_folder(options) ? text(options) : "";
  };
  return setting;
}

}  // namespace

DataKind kind_of(const std::string& data) {
  return parse_name("kind of data", kDataKinds, data.substr(0, data.find(':')));
}

bool on_canvas(const DataOptions& options) {
  const auto kind = kind_of(options.data);
  return kind == DataKind::digits || kind == DataKind::mnist || kind == DataKind::idx;
}

const Settings<DataOptions>& data_settings() {
  static const Settings<DataOptions> groups = {
      {"Data",
       {F("data", &O::data, any_text("KIND[:WHERE]"),
          "digits, digits:N, mnist:DIR, idx:DIR, images:DIR, tokens:DIR or text"),
        F("canvas", &O::canvas, canvas(),
          "size of the canvas for digits, as in 84 or 84x60; 0: the digit's own")
            .only_for(on_canvas),
        F("train-on", &O::train_on, one_of(kPlacements, kPlacementsForUsers),
          "where digits lie on the canvas: in the middle or anywhere")
            .only_for(on_canvas),
        F("placement", &O::fresh, one_of(kHowOften),
          "dynamic places of training: one for each image, or another in every epoch")
            .only_for(on_canvas),
        F("eval-on", &O::eval_on, placements(),
          "where digits lie in evaluation; none leaves the samples of --hold-out")
            .only_for(on_canvas),
        F("train-limit", &O::train_limit, whole(0),
          "samples to train on, evenly over the classes where data is sorted by class; 0: all"),
        F("eval-limit", &O::eval_limit, whole(0),
          "samples to evaluate on, evenly over the classes where data is sorted by class; 0: all"),
        F("hold-out", &O::hold_out, whole(0),
          "training images held out for validation, evenly over the classes; they then choose the "
          "best checkpoint")
            .left_out_by_default()
            .before_it("0"),
        only_for_folders(
            F("augment", &O::augment, one_of(kAugments),
              "training images of a folder: unchanged, cropped and flipped, or all of it")
                .before_it("none")),
        F("max-broken", &O::max_broken, real(0, 0.5),
          "largest share of a folder's images that may be broken, 0 to 0.5")
            .only_for(is_image_folder)
            .free_on_resume()}}};
  return groups;
}

}  // namespace translution
