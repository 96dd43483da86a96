#include "translution/data/settings.h"

#include "translution/core/error.h"

namespace translution {
namespace {

constexpr int64_t kMost = int64_t{1} << 40;

constexpr Named<Placement> kWhere[] = {{Placement::still, "static", ""},
                                       {Placement::moved, "dynamic", ""}};
constexpr Named<bool> kHowOften[] = {{false, "fixed", ""}, {true, "fresh", ""}};

std::string names_text(const std::vector<Placement>& placements) {
  std::string text;
  for (const Placement placement : placements)
    text += (text.empty() ? "" : ",") + std::string(name_of(kWhere, placement));
  return text;
}

Setting<DataOptions> limit(const char* name, const char* help, int64_t DataOptions::*field) {
  return {name, "N", help, [=](DataOptions& o, const Value& v) { o.*field = v.number(0, kMost); },
          [=](const DataOptions& o) { return std::to_string(o.*field); }};
}

bool is_image_folder(const DataOptions& options) {
  return kind_of(options.data) == DataKind::images;
}

// Concerns image folders alone: other data has no such setting, and refuses it. "data" stands
// before it in the table, so that the kind is known here.
void set_augment(DataOptions& options, const Value& value) {
  require(is_image_folder(options), value.name,
          " is for image folders: expected --data images:DIR, got ", options.data);
  options.augment = value.one_of(kAugments);
}

std::string augment_text(const DataOptions& options) {
  return is_image_folder(options) ? name_of(kAugments, options.augment) : "";
}

// Other data does not have it.
Setting<DataOptions> only(bool (*concerns)(const DataOptions&), Setting<DataOptions> setting) {
  setting.concerns = concerns;
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

const std::vector<SettingGroup<DataOptions>>& data_settings() {
  static const std::vector<SettingGroup<DataOptions>> groups = {
      {"Data",
       {{"data", "KIND[:WHERE]",
         "digits, digits:N, mnist:DIR, idx:DIR, images:DIR, tokens:DIR or text (digits)",
         [](DataOptions& o, const Value& v) { o.data = v.text; },
         [](const DataOptions& o) { return o.data; }},
        only(on_canvas,
             {"canvas", "N|HxW",
              "size of the canvas for digits, as in 84 or 84x60; 0: the digit's own (84)",
              [](DataOptions& o, const Value& v) {
                o.canvas = v.text == "0" ? std::vector<int64_t>() : v.sides();
              },
              [](const DataOptions& o) { return o.canvas.empty() ? "0" : times(o.canvas); }}),
        only(on_canvas, {"train-on", choices(kWhere),
                         "where digits lie on the canvas: in the middle or anywhere (static)",
                         [](DataOptions& o, const Value& v) { o.train_on = v.one_of(kWhere); },
                         [](const DataOptions& o) { return name_of(kWhere, o.train_on); }}),
        only(on_canvas,
             {"placement", choices(kHowOften),
              "dynamic places of training: one for each image, or another in every epoch (fixed)",
              [](DataOptions& o, const Value& v) { o.fresh = v.one_of(kHowOften); },
              [](const DataOptions& o) { return name_of(kHowOften, o.fresh); }}),
        only(on_canvas, {"eval-on", "static,dynamic",
                         "where digits lie in evaluation; one or both (static,dynamic)",
                         [](DataOptions& o, const Value& v) {
                           o.eval_on.clear();
                           for (const auto& word : v.words())
                             o.eval_on.push_back(Value{v.name, word}.one_of(kWhere));
                         },
                         [](const DataOptions& o) { return names_text(o.eval_on); }}),
        limit("train-limit",
              "samples to train on, evenly over the classes where data is sorted by class; 0: all "
              "(0)",
              &DataOptions::train_limit),
        limit("eval-limit",
              "samples to evaluate on, evenly over the classes where data is sorted by class; 0: "
              "all (0)",
              &DataOptions::eval_limit),
        {"augment", choices(kAugments),
         "training images of a folder: unchanged, cropped and flipped, or all of it (full)",
         set_augment, augment_text, /*of_the_run=*/false, /*before=*/"none"},
        only(is_image_folder,
             {"max-broken", "SHARE",
              "largest share of a folder's images that may be broken, 0 to 0.5 (0.01)",
              [](DataOptions& o, const Value& v) { o.max_broken = v.real(0, 0.5); },
              [](const DataOptions& o) { return number_text(o.max_broken); },
              /*of_the_run=*/true})}}};
  return groups;
}

}  // namespace translution
