#include <cstdio>
#include <exception>

#include "translution/train.h"

// predict RUN IMAGE: prints the class that a trained model predicts for an image.
int main(int argc, char** argv) try {
  if (argc != 3) throw std::invalid_argument("usage: predict RUN IMAGE");
  const auto trained = translution::load_trained(argv[1]);
  const torch::NoGradGuard no_gradients;
  const auto picture = translution::load_picture(trained.network->options(), argv[2]);
  const auto probabilities = trained.network->forward(picture).softmax(1)[0];
  const auto best = probabilities.argmax().item<int64_t>();
  std::printf("%s  %.1f %%\n", trained.classes[best].c_str(),
              100 * probabilities[best].item<double>());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
