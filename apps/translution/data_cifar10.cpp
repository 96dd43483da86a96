#include <fmt/format.h>

#include <array>
#include <numeric>

#include "commands.h"
#include "data_commands.h"
#include "model_flags.h"
#include "progress.h"
#include "table.h"
#include "translution/core/units.h"
#include "translution/data/cifar10.h"
#include "translution/data/image_folder_writer.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr const char* kCifar10Examples =
    "DIR is the directory that scripts/fetch-cifar10 filled. Writes all 60,000 images of 32x32 "
    "pixels,\n"
    "without loss, as train/CLASS/*.png and val/CLASS/*.png; val is CIFAR-10's test set. "
    "`translution\n"
    "train --data images:DIR --image-size 32` reads them.\n"
    "\n"
    "Examples:\n"
    "  scripts/fetch-cifar10 data/cifar10-files\n"
    "  translution data cifar10 data/cifar10-files --out data/cifar10";

struct Cifar10Flags {
  explicit Cifar10Flags(Command command) {
    command.argument("DIR", from, "directory with CIFAR-10's files");
    out = command.option("--out", "DIR", "directory of the images; must not exist");
    command.require_one_of({out});
  }

  std::string from;
  Option out;
};

struct CifarSplit {
  Cifar10Part part;
  const char* name;
};

constexpr CifarSplit kSplits[] = {{Cifar10Part::train, "train"}, {Cifar10Part::test, "val"}};
constexpr int64_t kCifar10Images = 60000;

void run_cifar10(const Cifar10Flags& flags) {
  const auto& classes = cifar10_classes();
  const std::string out = value_of(flags.out).text;
  ImageFolderWriter writer(out, {kSplits[0].name, kSplits[1].name}, classes);
  std::array<std::vector<int64_t>, std::size(kSplits)> counts;
  Progress progress(kCifar10Images, stderr);
  int64_t written = 0;
  for (size_t p = 0; p < std::size(kSplits); ++p) {
    counts[p].resize(classes.size());
    read_cifar10(flags.from, kSplits[p].part, [&](const Cifar10Strip& strip) {
      for (int64_t i = 0; i < strip.size(); ++i) {
        writer.add(p, strip.labels[i], strip.image(i));
        ++counts[p][strip.labels[i]];
        progress.update(++written, "images");
      }
    });
  }
  writer.commit();
  progress.finish();

  Table table({{"class"}, {"train", Align::right}, {"val", Align::right}});
  for (size_t c = 0; c < classes.size(); ++c)
    table.add({classes[c], grouped(counts[0][c]), grouped(counts[1][c])});
  const auto sum = [](const auto& list) {
    return std::accumulate(list.begin(), list.end(), int64_t{0});
  };
  table.add({"all", grouped(sum(counts[0])), grouped(sum(counts[1]))});
  fmt::print("{}: {} images of 32x32 pixels\n\n{}", out, grouped(written), table.str());
}

}  // namespace

void add_data_cifar10(Command data) {
  auto command = data.add_command("cifar10", "Write CIFAR-10 as a directory of images");
  const auto flags = std::make_shared<Cifar10Flags>(command);
  command.footer(kCifar10Examples);
  command.run([flags] { run_cifar10(*flags); });
}

}  // namespace translution::cli
