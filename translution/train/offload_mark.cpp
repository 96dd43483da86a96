#include "translution/train/offload_mark.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "translution/core/error.h"
#include "translution/io/atomic_file.h"
#include "translution/io/checksum.h"
#include "translution/io/file.h"
#include "translution/models/cost.h"

namespace translution {

using namespace detail;

namespace {

constexpr const char* kFile = "/offload.json";
constexpr int64_t kMostBytes = 1 << 16;

}  // namespace

OffloadMark offload_mark(const ModelOptions& model) {
  Checksum parameters;
  for (const auto& spec : model_parameters(model))
    parameters.add(join(spec.name, " ", times(spec.shape), "\n"));
  return {true, join(model.name(), " with ", name_of(kMethods, model.position.method)),
          parameters.hex(), 0, true};
}

OffloadMark read_offload_mark(const std::string& directory) {
  const std::string path = directory + kFile;
  if (!std::filesystem::exists(path)) return {};
  try {
    const auto json = nlohmann::json::parse(read_file(path, kMostBytes));
    return {true, json.at("model"), json.at("parameters"), json.at("step"), json.at("updating")};
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(join(path, ": is damaged; remove it and the *.state files beside it"));
  }
}

void write_offload_mark(const std::string& directory, const OffloadMark& mark) {
  const nlohmann::json json = {{"model", mark.model},
                               {"parameters", mark.parameters},
                               {"step", mark.step},
                               {"updating", mark.updating}};
  write_file_atomically(directory + kFile, json.dump() + "\n");
}

}  // namespace translution
