#include "translution/train/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/io/checksum.h"
#include "translution/io/file.h"
#include "translution/models/check_weights.h"

namespace translution {

using namespace detail;

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostManifest = int64_t{1} << 28;

// Resolves a link once, so that a concurrent save does not switch checkpoints between two reads.
fs::path resolve_link(const fs::path& path) {
  std::error_code error;
  const auto target = fs::read_symlink(path, error);
  return error ? path : path.parent_path() / target;
}

fs::path find_directory(const fs::path& path) {
  for (const char* link : {"checkpoints/last", "last"})
    if (fs::is_symlink(path / link)) return resolve_link(path / link);
  ensure(fs::exists(path), path.string(),
         ": no such file or directory; expected a run, a checkpoint or a file of weights");
  const auto found = resolve_link(path);
  ensure(fs::exists(found / "manifest.json"), path.string(),
         ": has no manifest.json; expected a checkpoint, or a run with checkpoints/last");
  return found;
}

Manifest read_manifest(const fs::path& checkpoint) {
  const std::string path = checkpoint / "manifest.json";
  const std::string text = read_file(path, kMostManifest);
  return locate_errors(path + ": ", [&] { return parse_manifest(text); });
}

void verify(const std::string& path, const FileRecord& expected) {
  const int64_t bytes = InputFile(path).size();
  ensure(bytes == expected.bytes, path, ": is damaged: has ", bytes, " bytes, the manifest says ",
         expected.bytes, "; use another checkpoint");
  const auto checksum = checksum_of_file(path);
  ensure(checksum == expected.checksum, path, ": is damaged: its checksum is ", checksum,
         ", the manifest says ", expected.checksum, "; use another checkpoint");
}

NamedTensors load_checked(const std::string& path, const FileRecord& expected,
                          const TensorConversion& convert = {}) {
  verify(path, expected);
  return load_safetensors(path, convert).tensors;
}

Checkpoint load_from(const FoundCheckpoint& found, const TensorConversion& convert = {}) {
  const std::string file = found.path + "/model.safetensors";
  const auto& manifest = found.manifest;
  return {found.path,
          manifest.step,
          manifest.best,
          {load_checked(file, manifest.model, convert), {}, manifest.state}};
}

Checkpoint load_all_from(const fs::path& path) {
  const FoundCheckpoint found{path, read_manifest(path)};
  auto checkpoint = load_from(found);
  checkpoint.content.optimizer =
      load_checked(path / "optimizer.safetensors", found.manifest.optimizer);
  return checkpoint;
}

Checkpoint verify_all(const fs::path& path) {
  const FoundCheckpoint found{path, read_manifest(path)};
  verify(path / "model.safetensors", found.manifest.model);
  verify(path / "optimizer.safetensors", found.manifest.optimizer);
  return without_tensors(found);
}

// The first checkpoint, from the highest step down, that `load` does not throw at.
NewestWhole newest(const std::string& directory,
                   const std::function<Checkpoint(const fs::path&)>& load) {
  NewestWhole result;
  for (const int64_t step : list_steps(directory)) {
    try {
      result.checkpoint = load(fs::path(directory) / checkpoint_name(step));
      break;
    } catch (const std::runtime_error& error) {
      result.skipped.emplace_back(error.what());
    }
  }
  return result;
}

}  // namespace

void require_finite(const Checkpoint& checkpoint) {
  require_finite(checkpoint.content.model, checkpoint.path + "/model.safetensors");
  require_finite(checkpoint.content.optimizer, checkpoint.path + "/optimizer.safetensors");
}

Checkpoint load_checkpoint(const std::string& path) {
  auto checkpoint = load_all_from(find_directory(path));
  require_finite(checkpoint);
  return checkpoint;
}

Checkpoint without_tensors(const FoundCheckpoint& found) {
  const auto& manifest = found.manifest;
  return {found.path, manifest.step, manifest.best, {{}, {}, manifest.state}};
}

FoundCheckpoint find_checkpoint(const std::string& path) {
  const auto directory = find_directory(path);
  return {directory, read_manifest(directory)};
}

Checkpoint load_weights(const FoundCheckpoint& found, const TensorConversion& convert) {
  auto checkpoint = load_from(found, convert);
  require_finite(checkpoint);
  return checkpoint;
}

Checkpoint load_weights(const std::string& path) { return load_weights(find_checkpoint(path)); }

Manifest load_manifest(const std::string& path) { return find_checkpoint(path).manifest; }

NewestWhole newest_whole(const std::string& directory) { return newest(directory, load_all_from); }

NewestWhole newest_verified(const std::string& directory) { return newest(directory, verify_all); }

std::string checkpoint_name(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return name;
}

std::vector<int64_t> list_steps(const std::string& directory) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    long long step = 0;
    const bool numbered = std::sscanf(name.c_str(), "step-%18lld", &step) == 1 && step >= 0;
    if (numbered && name == checkpoint_name(step)) steps.push_back(step);
  }
  ensure(!error || error == std::errc::no_such_file_or_directory, directory,
         ": cannot be read: ", error.message());
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

}  // namespace translution
