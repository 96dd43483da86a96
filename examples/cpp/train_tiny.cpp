#include <cstdio>

#include "translution/data/labelled_images.h"
#include "translution/models/vit.h"
#include "translution/train/adamw.h"
#include "translution/train/evaluate.h"

using namespace translution;

// Pixels [n,28,28] from 0 to 255 to network input [n,1,28,28] from 0 to 1.
torch::Tensor images_of(const LabelledImages& set) {
  return set.pixels.unsqueeze(1).to(torch::kFloat).div(255);
}

int main() {
  torch::manual_seed(0);
  ModelOptions options;  // a ViT of two layers on 4x4 patches and a class token
  options.architecture = {"tiny",         /*depth=*/2, /*dim=*/32, /*heads=*/2, /*mlp_dim=*/64,
                          /*dim_head=*/16};
  options.image_size = {28, 28}, options.patch_size = 7;
  options.channels = 1, options.classes = 10;
  options.position.method = Method::translution;
  ViT network(options);
  AdamW optimizer(network->parameters(), {/*lr=*/3e-3});

  const auto digits = make_digits(2000, /*seed=*/1), unseen = make_digits(500, /*seed=*/2);
  const auto images = images_of(digits).split(50), labels = digits.labels.split(50);
  for (int epoch = 0; epoch < 3; ++epoch)
    for (size_t batch = 0; batch < images.size(); ++batch) {
      optimizer.zero_grad();
      loss_of(network->forward(images[batch]), labels[batch]).backward();
      optimizer.step(/*clip=*/1.0);
    }

  const torch::NoGradGuard no_gradients;
  const auto guesses = network->forward(images_of(unseen)).argmax(1);
  const double right = guesses.eq(unseen.labels).to(torch::kFloat).mean().item<double>();
  std::printf("%.1f %% of %d unseen digits recognised\n", 100 * right, int(unseen.size()));
}
