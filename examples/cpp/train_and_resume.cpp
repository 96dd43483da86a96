#include <cstdio>

#include "translution/train.h"

// train_and_resume DIRECTORY: trains a small ViT on moving digits. If it is killed at any time and
// started again, it ends with the same weights.
int main(int argc, char** argv) {
  using namespace translution;
  RunOptions run;
  run.directory = argc > 1 ? argv[1] : "runs/digits";
  run.resume = true;  // continues where an earlier call stopped

  run.model = ModelOptions::named("vit-tiny/12");  // image size and classes come from the data
  run.model.position.method = Method::alpha_translution;
  run.data.data = "digits:2000";
  run.data.train_on = Placement::moved;
  run.data.eval_on = {Placement::moved};
  run.train.epochs = 2;
  run.train.batch = 50;
  run.train.lr = 3e-3;
  run.train.save_every = 10;  // steps

  run.events.started = [](int64_t step) { std::printf("starts after step %d\n", int(step)); };
  run.events.metrics = [](const Metrics& moment) {
    std::printf("step %d, %s:", int(moment.step), moment.split.c_str());
    for (const auto& [name, value] : moment.values)
      if (name == "loss" || name == "top1") std::printf("  %s %.3f", name.c_str(), value);
    std::printf("\n");
  };
  const auto result = train(run);
  write_run_report(run.directory + "/report.html", {run.directory});
  std::printf("done after step %d; %s/report.html shows the run\n", int(result.step),
              run.directory.c_str());
}
