#include "translution/train/offload_check.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "translution/core/error.h"
#include "translution/core/units.h"
#include "translution/io/working_file.h"
#include "translution/models/cost.h"
#include "translution/models/memory_check.h"
#include "translution/train/checkpoint.h"
#include "translution/train/clip.h"
#include "translution/train/offload_mark.h"

namespace translution {

using namespace detail;

namespace {

namespace fs = std::filesystem;

void check_directory(const std::string& directory) {
  require(fs::exists(directory), "offload: ", directory,
          " does not exist; create the directory, on a fast disk");
  require(fs::is_directory(directory), "offload: ", directory,
          " is not a directory; name one on a fast disk");
  const bool writable = access(directory.c_str(), W_OK | X_OK) == 0;
  require(writable, "offload: ", directory, " cannot be written to: ", std::strerror(errno),
          "; choose a directory with write permission");
}

void check_model(const std::string& directory, const ModelOptions& model) {
  const auto found = read_offload_mark(directory), expected = offload_mark(model);
  require(!found.exists || found.parameters == expected.parameters, "offload: ", directory,
          " holds the files of another model: expected ", expected.model, ", got ", found.model,
          "; remove offload.json and the *.state files there, or choose another directory");
}

// Bytes that the files of an earlier run will free.
double existing_bytes(const std::string& directory, const ModelOptions& model) {
  double bytes = 0;
  for (const auto& file : offload_files(model)) {
    std::error_code error;
    const auto size = fs::file_size(directory + "/" + file.name, error);
    if (!error) bytes += static_cast<double>(size);
  }
  return bytes;
}

// The directory, or the nearest one above it that exists.
std::string existing(const fs::path& directory) {
  fs::path path = fs::absolute(directory);
  while (!fs::exists(path) && path.has_relative_path()) path = path.parent_path();
  return path;
}

void require_space(const std::string& directory, double bytes, double freed,
                   const std::string& what) {
  const double available = static_cast<double>(free_disk_bytes(directory)) + freed;
  ensure(bytes <= available, "offload: ", what, " need ", in_bytes(bytes), " on the disk of ",
         directory, ", but only ", in_bytes(available),
         " are available; free some space, lower --keep, or choose another directory");
}

// The newest ones, the best, and one that is being written.
void check_space(const RunOptions& options) {
  const auto& directory = options.train.offload;
  const double state = 3 * model_cost(options.model).weight_bytes;
  const double freed = existing_bytes(directory, options.model);
  const auto present = static_cast<int64_t>(list_steps(options.directory + "/checkpoints").size());
  const int64_t to_come = std::max<int64_t>(1, options.train.keep + 2 - present);
  const double checkpoints = state * static_cast<double>(to_come);
  const auto run = existing(options.directory);
  const auto name = join(to_come, to_come == 1 ? " checkpoint" : " checkpoints");
  if (share_a_disk(directory, run))
    return require_space(directory, state + checkpoints, freed,
                         join("weights, moments and ", name));
  require_space(directory, state, freed, "weights and moments");
  require_space(run, checkpoints, 0, name);
}

}  // namespace

std::vector<OffloadFile> offload_files(const ModelOptions& model) {
  std::vector<OffloadFile> files = {{"embedding.state", {}}};
  for (int64_t layer = 0; layer < model.architecture.depth; ++layer) {
    const auto number = std::to_string(layer);
    files.push_back(
        {"block-" + std::string(4 - std::min<size_t>(4, number.size()), '0') + number + ".state",
         {}});
  }
  files.push_back({"head.state", {}});
  for (const auto& spec : model_parameters(model))
    files[layer_of_parameter(spec.name, model.architecture.depth)].parameters.push_back(spec);
  return files;
}

void check_offload(const RunOptions& options, int64_t batch, int64_t part) {
  require(options.model.family != Family::cloud,
          "offload: expected a model of images or text, got ", options.model.name());
  const int64_t processes = options.world ? options.world->size() : 1;
  require(processes == 1, "offload: expected one process, got ", processes);
  check_directory(options.train.offload);
  check_model(options.train.offload, options.model);
  require_memory_to_offload(options.model, batch, part, "raise --accumulate, or lower --batch");
  check_space(options);
}

}  // namespace translution
