#pragma once

#include <string>

#include "translution/io/lock.h"
#include "translution/train/checkpoint.h"

namespace translution {

/// Writes checkpoints into a directory, which no other process can do meanwhile. Whenever it is
/// stopped, by a full disk or a kill, all checkpoints there were are still there; what it leaves
/// behind is cleared away when the directory is opened again. It holds
///   step-00001234/   a checkpoint
///   last, best       links to the newest and the best of them
///   .saved           an empty file, there from the first checkpoint on
class CheckpointStore {
 public:
  /// Makes the directory if need be.
  explicit CheckpointStore(std::string directory, int64_t keep_last = 3);

  /// Returns when the checkpoint is on the disk and `last` names it, and `best` if it is the best.
  /// Then those of lower steps go, but for the `keep_last` newest and the best. One of the same
  /// step is replaced; ones of higher steps stay.
  void save(int64_t step, const CheckpointContent& content, bool is_best);

 private:
  void clear_temporaries();
  void finish_links();
  void write(int64_t step, const CheckpointContent& content, bool is_best);
  void put_in_place(const std::string& written, int64_t step);
  void link(const char* name, int64_t step);
  void mark_saved();
  void remove_old(int64_t step);
  std::string inside(const std::string& name) const { return directory_ + "/" + name; }

  const std::string directory_;
  const int64_t keep_last_;
  const DirectoryLock lock_;
};

/// Was the directory opened by a CheckpointStore that never saved a checkpoint in it?
bool never_saved(const std::string& directory);

}  // namespace translution
