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

const std::string& made(const std::string& directory) {
  disk::make_directories(directory);
  return directory;
}

// What has not been put in place goes again.
struct Temporary {
  explicit Temporary(std::string where) : path(std::move(where)) {}
  ~Temporary() {
    try {
      if (fs::exists(fs::symlink_status(path))) disk::remove(path);
    } catch (const std::exception&) {  // the next save tries again
    }
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::string path;
};

// The checksum is made of the bytes on their way, not of what the disk gives back.
FileRecord write_tensors(const std::string& path, const NamedTensors& tensors) {
  AtomicFile file(path);
  Checksum checksum;
  FileRecord record;
  write_safetensors(tensors, {{"format", "pt"}}, [&](std::string_view bytes) {
    file.write(bytes);
    checksum.add(bytes);
    record.bytes += static_cast<int64_t>(bytes.size());
  });
  file.commit();
  record.checksum = checksum.hex();
  return record;
}

}  // namespace

CheckpointStore::CheckpointStore(std::string directory, int64_t keep_last)
    : directory_(std::move(directory)), keep_last_(keep_last), lock_(made(directory_)) {
  require(keep_last >= 1, "checkpoints: expected to keep at least 1, got ", keep_last);
  clear_temporaries();
  finish_links();
}

void CheckpointStore::clear_temporaries() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory_))
    if (entry.path().filename().string().rfind(disk::kTemporary, 0) == 0)
      paths.push_back(entry.path());
  for (const auto& path : paths) disk::remove(path);
}

// A kill right after a checkpoint was put in place left the links behind.
void CheckpointStore::finish_links() {
  const auto steps = list_steps(directory_);
  if (steps.empty()) return;
  const std::string newest = checkpoint_name(steps.front());
  bool best = false;
  try {
    best = load_manifest(inside(newest)).best;
  } catch (const std::runtime_error&) {  // damaged; whoever loads it is told
    return;
  }
  std::error_code error;
  if (fs::read_symlink(inside("last"), error) != newest) link("last", steps.front());
  if (best && fs::read_symlink(inside("best"), error) != newest) link("best", steps.front());
}

void CheckpointStore::save(int64_t step, const CheckpointContent& content, bool is_best) {
  require(step >= 0, "checkpoints: expected a step from 0 on, got ", step);
  try {
    clear_temporaries();
    write(step, content, is_best);
    link("last", step);
    if (is_best) link("best", step);
    mark_saved();
  } catch (const std::runtime_error& error) {
    const bool others = fs::exists(directory_) && !list_steps(directory_).empty();
    throw std::runtime_error(
        join("saving the checkpoint of step ", step, " failed, ",
             others ? "earlier ones are whole: " : "and there is none yet: ", error.what()));
  }
  remove_old(step);
}

// Last, so that a run that was killed before it has a checkpoint or has no mark.
void CheckpointStore::mark_saved() {
  if (!fs::exists(directory_ + kSaved)) write_file_atomically(directory_ + kSaved, "");
}

void CheckpointStore::write(int64_t step, const CheckpointContent& content, bool is_best) {
  const Temporary place(inside(disk::temporary_name()));
  disk::make_directory(place.path);
  Manifest manifest{step, is_best, {}, {}, content.state};
  manifest.model = write_tensors(place.path + "/model.safetensors", content.model);
  manifest.optimizer = write_tensors(place.path + "/optimizer.safetensors", content.optimizer);
  write_file_atomically(place.path + "/manifest.json", format_manifest(manifest));
  put_in_place(place.path, step);
}

void CheckpointStore::put_in_place(const std::string& written, int64_t step) {
  const std::string path = inside(checkpoint_name(step));
  if (fs::exists(fs::symlink_status(path)))
    disk::exchange(written, path);
  else
    disk::rename(written, path);
  disk::sync_directory(directory_);
}

void CheckpointStore::link(const char* name, int64_t step) {
  const Temporary aside(inside(disk::temporary_name()));
  disk::make_link(checkpoint_name(step), aside.path);
  disk::rename(aside.path, inside(name));
  disk::sync_directory(directory_);
}

bool never_saved(const std::string& directory) {
  return fs::exists(directory + DirectoryLock::kFile) && !fs::exists(directory + kSaved) &&
         list_steps(directory).empty();
}

void CheckpointStore::remove_old(int64_t step) {
  std::error_code error;
  const std::string best = fs::read_symlink(inside("best"), error);
  int64_t kept = 0;
  for (const int64_t other : list_steps(directory_)) {
    const std::string name = checkpoint_name(other);
    if (other > step || ++kept <= keep_last_ || name == best) continue;
    // Under another name first, so that a kill leaves no half of a checkpoint.
    const Temporary gone(inside(disk::temporary_name()));
    try {
      disk::rename(inside(name), gone.path);
    } catch (const std::runtime_error&) {  // no reason to stop a run; the next save tries again
    }
  }
}

}  // namespace translution
