#pragma once

#include <string>

#include "translution/io/lock.h"
#include "translution/train/checkpoint.h"

namespace translution {

/// Writes checkpoints into a directory and locks it against other processes. A save that a full
/// disk or a kill interrupts leaves all existing checkpoints intact; its temporary files are
/// removed when the directory is next opened. The directory holds
///   step-00001234/   a checkpoint
///   last, best       links to the newest and the best checkpoint
///   .saved           an empty file, created with the first checkpoint
class CheckpointStore {
 public:
  /// Creates the directory if it does not exist. Keeps the `keep_last` newest checkpoints.
  explicit CheckpointStore(std::string directory, int64_t keep_last = 3);

  /// Writes the checkpoint to disk, then points `last` at it, and `best` if `is_best`. Replaces a
  /// checkpoint of the same step. Removes checkpoints of lower steps, except the `keep_last` newest
  /// and the best; those of higher steps stay.
  void save(int64_t step, const CheckpointContent& content, bool is_best);

 private:
  void clear_temporaries();
  void repair_links();
  void write(int64_t step, const CheckpointContent& content, bool is_best);
  void move_into_place(const std::string& written, int64_t step);
  void link(const char* name, int64_t step);
  void mark_saved();
  void remove_old(int64_t step);
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }

  const std::string directory_;
  const int64_t keep_last_;
  const DirectoryLock lock_;
};

/// True if a CheckpointStore opened the directory but never saved a checkpoint in it.
bool never_saved(const std::string& directory);

}  // namespace translution
