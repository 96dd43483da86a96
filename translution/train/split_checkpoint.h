#pragma once

#include <map>
#include <string>

#include "translution/core/slot_part.h"
#include "translution/distributed/rank_group.h"
#include "translution/train/checkpoint.h"

namespace translution {

/// The rows that this process has of the tensors in a file, by name. It has the others as a whole.
using SplitRows = std::map<std::string, TableRows>;

/// Writes a file of tensors. Every rank of the group calls it with its rows and writes them; the
/// first one, whose `path` counts, writes everything else and returns the record. The bytes are
/// those of save_safetensors with whole tensors. Each row must belong to one rank, and all ranks
/// must see the file. Throws if the first rank does not read what the ranks have written.
FileRecord write_split_tensors(RankGroup& group, const std::string& path,
                               const NamedTensors& tensors, const SplitRows& rows);

/// CheckpointContent::write for a group whose ranks split the parameters in `tables`.
std::function<FileRecord(const std::string&, const NamedTensors&)> write_rows_to(
    RankGroup& group, const SplitRows& tables);
/// What a rank without a CheckpointStore does while the first rank of its group saves.
void write_rows(const CheckpointContent& content);

/// Fills float32 tensors from a file, and reads only their rows. Throws if the file has no whole
/// tensor of that shape, or values that are not finite.
void read_split_tensors(const std::string& path, const NamedTensors& tensors,
                        const SplitRows& rows);
/// Fills the tensors of `content` from a checkpoint.
void read_rows(const std::string& checkpoint, const CheckpointContent& content,
               const SplitRows& tables);

/// newest_verified by the first rank; what the others return has no `skipped`.
NewestWhole newest_of_first(RankGroup& group, const std::string& directory);

}  // namespace translution
