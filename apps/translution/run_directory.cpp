#include "run_directory.h"

#include "translution/core/error.h"
#include "translution/data/settings.h"
#include "translution/models/settings.h"
#include "translution/nn/regrid.h"

namespace translution::cli {

Trained load_trained(const std::string& path) {
  const auto checkpoint = load_checkpoint(path);
  Trained trained{checkpoint.path, checkpoint.step, {}, {}, nullptr};
  const auto& state = checkpoint.content.state;
  try {
    trained.config = state.at("config").get<std::map<std::string, std::string>>();
    trained.classes = state.at("classes").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(join(checkpoint.path, ": was not written by `translution train`"));
  }
  auto options = read_model(trained.config);
  options.init = Init::none;
  trained.network = std::make_shared<Network>(options);
  load_tensors(trained.network->module(), checkpoint.content.model, options.grid());
  trained.network->module().eval();
  return trained;
}

DataOptions data_options(const std::map<std::string, std::string>& config,
                         const std::map<std::string, std::string>& given, uint64_t seed) {
  DataOptions options;
  options.seed = seed;
  set_all(data_settings(), config, options);
  set_all(data_settings(), given, options, "--");
  return options;
}

}  // namespace translution::cli
