#include "apps/translution/reproduce/recipe.h"

namespace translution::cli {
namespace {

constexpr const char *kMnist = "mnist:data/mnist", *kImageNet = "images:data/imagenet",
                     *kOpenWebText = "tokens:data/openwebtext",
                     *kFashionMnist = "mnist:data/fashion-mnist", *kCifar10 = "images:data/cifar10",
                     *kShakespeare = "tokens:data/tinyshakespeare";

// ------------------------------------------------------------------------------------- paper

// The paper does not state the initialisation. Image models use that of the authors' released code,
// whose position embedding is as large as the embedded patches. docs/reproducing.md compares both.
Recipe paper_digits() {
  Recipe recipe;
  recipe.data.data = kMnist;
  recipe.data.train_on = Placement::moved;
  recipe.train.epochs = 20;
  recipe.train.lr = 5e-4;
  recipe.train.warmup = 200;
  recipe.init = Init::authors;
  return recipe;
}

Recipe paper_images() {
  Recipe recipe;
  recipe.data.data = kImageNet;
  recipe.data.augment = Augment::full;
  recipe.train.epochs = 300;
  recipe.train.warmup = 25000;
  recipe.train.label_smoothing = 0.1;
  recipe.train.workers = 2;
  recipe.init = Init::authors;
  return recipe;
}

Recipe paper_text() {
  Recipe recipe;
  recipe.data.data = kOpenWebText;
  recipe.train.steps = 600000;
  recipe.train.batch = 8;
  recipe.train.lr = 6e-4, recipe.train.min_lr = 6e-5;
  recipe.train.warmup = 2000;
  recipe.train.weight_decay = 0.1;
  recipe.train.beta2 = 0.95;
  recipe.train.eval_every = 10000, recipe.train.save_every = 2000;
  return recipe;
}

// -------------------------------------------------------------------------------------- desk

// Small batches: few passes would otherwise mean few updates.
Recipe desk_digits() {
  Recipe recipe = paper_digits();
  recipe.train.epochs = 5;
  recipe.train.batch = 64;
  recipe.train.warmup = 250;
  recipe.train.save_every = 500;
  recipe.train.keep = 1;
  return recipe;
}

// One pass over Fashion-MNIST: all rows of a table take hours, not days.
Recipe desk_images() {
  Recipe recipe = desk_digits();
  recipe.data.data = kFashionMnist;
  recipe.train.epochs = 1;
  recipe.train.warmup = 100;
  return recipe;
}

// Few steps: a text of a megabyte is memorised after a few passes.
Recipe desk_text() {
  Recipe recipe = paper_text();
  recipe.data.data = kShakespeare;
  recipe.train.steps = 1000;
  recipe.train.warmup = 100;
  recipe.train.eval_every = 100, recipe.train.save_every = 100;
  recipe.train.keep = 1;
  return recipe;
}

// ------------------------------------------------------------------------------------- quick

constexpr const char* kSmall = "tiny";

Recipe quick_images() {
  Recipe recipe = desk_digits();
  recipe.data.data = "digits:2048";
  recipe.train.epochs = 4;
  recipe.train.warmup = 10;
  recipe.train.save_every = 0;
  recipe.architecture = kSmall;
  return recipe;
}

Recipe quick_text() {
  Recipe recipe = desk_text();
  recipe.data.data = "text";
  recipe.train.steps = 100;
  recipe.train.warmup = 10;
  recipe.train.eval_every = 50, recipe.train.save_every = 50;
  recipe.architecture = kSmall;
  return recipe;
}

}  // namespace

Subject subject_of(const ModelOptions& model) {
  if (model.family == Family::gpt) return Subject::text;
  return model.channels == 1 ? Subject::digits : Subject::images;
}

std::optional<KnownData> known_data(const std::string& data) {
  const DataFacts digits{60000, 10000, 1, 10, {84, 84}, 0};
  const KnownData all[] = {
      {kMnist, "MNIST", digits, kMnist, "scripts/fetch-mnist"},
      // Names of trainings still contain the path of Debian's package, once the only source.
      {kFashionMnist, "Fashion-MNIST", digits, "mnist:/usr/share/datasets/fashion-mnist",
       "scripts/fetch-fashion-mnist"},
      {kCifar10,
       "CIFAR-10",
       {50000, 10000, 3, 10, {224, 224}, 0},
       kCifar10,
       "scripts/fetch-cifar10 && translution data cifar10 data/cifar10-files --out data/cifar10"},
      {kImageNet, "ImageNet-1K", {1281167, 50000, 3, 1000, {224, 224}, 0}, kImageNet, ""},
      // GPT-2's tokens in windows of 160.
      {kOpenWebText, "OpenWebText", {56472388, 27725, 0, 0, {}, 50257}, kOpenWebText, ""},
      {kShakespeare,
       "tinyshakespeare",
       {1886, 225, 0, 0, {}, 50257},
       kShakespeare,
       "scripts/fetch-tinyshakespeare && scripts/fetch-gpt2-bpe && translution data text "
       "data/tinyshakespeare/input.txt --bpe data/gpt2 --out data/tinyshakespeare"},
  };
  for (const auto& known : all)
    if (data == known.data) return known;
  return std::nullopt;
}

Recipe recipe_for(Budget budget, Subject subject) {
  using Make = Recipe (*)();
  constexpr Make kRecipes[3][3] = {{quick_images, quick_images, quick_text},
                                   {desk_digits, desk_images, desk_text},
                                   {paper_digits, paper_images, paper_text}};
  return kRecipes[static_cast<int>(budget)][static_cast<int>(subject)]();
}

}  // namespace translution::cli
