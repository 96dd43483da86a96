#include "translution/train/checkpoint_store.h"

#include <filesystem>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/io/atomic_file.h"
#include "translution/io/checksum.h"
#include "translution/io/disk.h"

namespace translution {

using namespace detail;

namespace {

namespace fs = std::filesystem;

constexpr const char* kSaved = "/.saved";

const std::string& create_directory(const std::string& directory) {
  disk::make_directories(directory);
  return directory;
}

// Removes the file or directory at its path, if there is one, on destruction.
struct Temporary {
  explicit Temporary(std::string temporary) : path(std::move(temporary)) {}
  ~Temporary() {
    try {
      if (fs::exists(fs::symlink_status(path))) disk::remove(path);
    } catch (const std::exception&) {  // the next save retries
    }
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::string path;
};

// Computes the checksum from the bytes in memory, not from what the disk returns.
FileRecord write_tensors(const std::string& path, const NamedTensors& tensors,
                         const std::function<void(std::string_view)>& written) {
  AtomicFile file(path);
  Checksum checksum;
  FileRecord record;
  write_safetensors(tensors, {{"format", "pt"}}, [&](std::string_view bytes) {
    file.write(bytes);
    checksum.add(bytes);
    record.bytes += static_cast<int64_t>(bytes.size());
    if (written) written(bytes);
  });
  file.commit();
  record.checksum = checksum.hex();
  return record;
}

}  // namespace

CheckpointStore::CheckpointStore(std::string directory, int64_t keep_last)
    : directory_(std::move(directory)), keep_last_(keep_last), lock_(create_directory(directory_)) {
  require(keep_last >= 1, "checkpoints: expected keep of at least 1, got ", keep_last);
  clear_temporaries();
  repair_links();
}

void CheckpointStore::clear_temporaries() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory_))
    if (entry.path().filename().string().rfind(disk::kTemporary, 0) == 0)
      paths.push_back(entry.path());
  for (const auto& path : paths) disk::remove(path);
}

// A kill between renaming a checkpoint and updating the links leaves the links outdated.
void CheckpointStore::repair_links() {
  const auto steps = list_steps(directory_);
  if (steps.empty()) return;
  const std::string newest = checkpoint_name(steps.front());
  bool best = false;
  try {
    best = load_manifest(path_of(newest)).best;
  } catch (const std::runtime_error&) {  // damaged: load_checkpoint reports it
    return;
  }
  std::error_code error;
  if (fs::read_symlink(path_of("last"), error) != newest) link("last", steps.front());
  if (best && fs::read_symlink(path_of("best"), error) != newest) link("best", steps.front());
}

void CheckpointStore::save(int64_t step, const CheckpointContent& content, bool is_best) {
  require(step >= 0, "checkpoints: expected a step of at least 0, got ", step);
  try {
    clear_temporaries();
    write(step, content, is_best);
    link("last", step);
    if (is_best) link("best", step);
    mark_saved();
  } catch (const std::runtime_error& error) {
    const bool others = fs::exists(directory_) && !list_steps(directory_).empty();
    throw std::runtime_error(
        join("saving the checkpoint of step ", step, " failed; ",
             others ? "earlier checkpoints are intact: " : "there is no earlier checkpoint: ",
             error.what()));
  }
  remove_old(step);
}

// Called after checkpoint and links are on disk: the mark never exists without a checkpoint.
void CheckpointStore::mark_saved() {
  if (!fs::exists(directory_ + kSaved)) write_file_atomically(directory_ + kSaved, "");
}

void CheckpointStore::write(int64_t step, const CheckpointContent& content, bool is_best) {
  const Temporary staged(path_of(disk::temporary_name()));
  disk::make_directory(staged.path);
  Manifest manifest{step, is_best, {}, {}, content.state};
  const auto write = [&](const char* name, const NamedTensors& tensors) {
    const auto path = staged.path + name;
    return content.write ? content.write(path, tensors)
                         : write_tensors(path, tensors, content.written);
  };
  manifest.model = write("/model.safetensors", content.model);
  manifest.optimizer = write("/optimizer.safetensors", content.optimizer);
  write_file_atomically(staged.path + "/manifest.json", format_manifest(manifest));
  move_into_place(staged.path, step);
}

void CheckpointStore::move_into_place(const std::string& written, int64_t step) {
  const std::string path = path_of(checkpoint_name(step));
  if (fs::exists(fs::symlink_status(path)))
    disk::exchange(written, path);
  else
    disk::rename(written, path);
  disk::sync_directory(directory_);
}

void CheckpointStore::link(const char* name, int64_t step) {
  const Temporary new_link(path_of(disk::temporary_name()));
  disk::make_link(checkpoint_name(step), new_link.path);
  disk::rename(new_link.path, path_of(name));
  disk::sync_directory(directory_);
}

bool never_saved(const std::string& directory) {
  return fs::exists(directory + DirectoryLock::kFile) && !fs::exists(directory + kSaved) &&
         list_steps(directory).empty();
}

void CheckpointStore::remove_old(int64_t step) {
  std::error_code error;
  const std::string best = fs::read_symlink(path_of("best"), error);
  int64_t kept = 0;
  for (const int64_t other : list_steps(directory_)) {
    const std::string name = checkpoint_name(other);
    if (other > step || ++kept <= keep_last_ || name == best) continue;
    // Rename before removing, so that a kill does not leave a partial checkpoint.
    const Temporary removed(path_of(disk::temporary_name()));
    try {
      disk::rename(path_of(name), removed.path);
    } catch (const std::runtime_error&) {  // does not stop the run; the next save retries
    }
  }
}

}  // namespace translution
