#include "translution/train/split_checkpoint.h"

#include <torch/utils.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/io/checksum.h"
#include "translution/io/disk.h"
#include "translution/io/file.h"
#include "translution/io/safetensors_header.h"
#include "translution/models/check_weights.h"

namespace translution {

using namespace detail;

namespace {

// A file that the ranks write together.
class SharedFile {
 public:
  explicit SharedFile(const std::string& path) : path_(path), fd_(disk::open_existing(path)) {}
  ~SharedFile() { close(fd_); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  void write(int64_t begin, std::string_view bytes) const {
    disk::seek(fd_, begin, path_);
    disk::write(fd_, bytes, path_);
  }
  void sync() const { disk::sync(fd_, path_); }

 private:
  const std::string path_;
  const int fd_;
};

void create_file(const std::string& path) {
  const int fd = disk::create(path, path);
  ensure(fd >= 0, path, ": exists already");
  close(fd);
}

// Bytes from `begin` on, counted from the start of the file: a row, or a tensor that is not split.
struct Piece {
  int64_t begin, bytes;
};

const TableRows* rows_of(const SplitRows& rows, const std::string& name) {
  const auto found = rows.find(name);
  return found == rows.end() ? nullptr : &found->second;
}

SafetensorsHeader whole_header(const NamedTensors& tensors, const SplitRows& rows) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == torch::kFloat,
                "checkpoint: expected a contiguous float tensor ", name);
    auto shape = tensor.sizes().vec();
    if (const auto* table = rows_of(rows, name)) shape[0] = table->all;
    entries.push_back({name, SafetensorsType::f32, shape, 0, 0});
  }
  auto header = lay_out(std::move(entries));
  header.metadata = {{"format", "pt"}};
  return header;
}

// All pieces of an entry whose tensors begin at byte `start`.
std::vector<Piece> pieces_of(const SafetensorsEntry& entry, int64_t start, const SplitRows& rows) {
  const auto* table = rows_of(rows, entry.name);
  const int64_t count = table ? table->all : 1, bytes = (entry.end - entry.begin) / count;
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < count; ++i) pieces.push_back({start + entry.begin + i * bytes, bytes});
  return pieces;
}

// Sums of these do not overflow, and do not depend on who adds which piece.
int64_t bits_of(const Piece& piece, const Checksum& checksum) {
  Checksum with_place;
  with_place.add(join(piece.begin, " ", checksum.hex()));
  return static_cast<int64_t>(with_place.bits() >> 32);
}

// Writes the rows of this rank, and if it is the first one also tensors that are not split. Returns
// the sum of the checksums of these pieces.
int64_t write_own(const SharedFile& file, const torch::Tensor& tensor,
                  const std::vector<Piece>& pieces, const TableRows* table) {
  const torch::Tensor plain = tensor.detach().cpu();
  const auto* bytes = static_cast<const char*>(plain.data_ptr());
  int64_t sum = 0;
  for (int64_t i = 0; i < (table ? plain.size(0) : 1); ++i) {
    const auto& piece = pieces[table ? table->rows[i] : 0];
    const std::string_view own(bytes + i * piece.bytes, piece.bytes);
    file.write(piece.begin, own);
    Checksum checksum;
    checksum.add(own);
    sum += bits_of(piece, checksum);
  }
  return sum;
}

// Reads a file from start to end.
class Reader {
 public:
  explicit Reader(const std::string& path) : file_(path) {}

  void skip(int64_t bytes) { read(bytes, nullptr); }
  int64_t bits_of_next(const Piece& piece) {
    Checksum checksum;
    read(piece.bytes, &checksum);
    return bits_of(piece, checksum);
  }
  FileRecord record() const { return {file_.size(), whole_.hex()}; }

 private:
  void read(int64_t count, Checksum* of_piece) {
    for (; count > 0; count -= static_cast<int64_t>(buffer_.size())) {
      buffer_.resize(std::min<int64_t>(count, 1 << 20));
      file_.read(buffer_.data(), static_cast<int64_t>(buffer_.size()));
      whole_.add(buffer_);
      if (of_piece) of_piece->add(buffer_);
    }
  }

  InputFile file_;
  Checksum whole_;
  std::string buffer_;
};

}  // namespace

FileRecord write_split_tensors(RankGroup& group, const std::string& first_path,
                               const NamedTensors& tensors, const SplitRows& rows) {
  const bool is_first = group.rank() == 0;
  const auto path = group.text_of_first(first_path);
  const auto header = whole_header(tensors, rows);
  const auto text = format_safetensors_header(header);
  const auto start = static_cast<int64_t>(text.size());
  if (is_first) create_file(path);
  group.wait();
  ensure(std::filesystem::exists(path), path,
         ": a rank does not see this new file; put the run on a file system that all ranks share");
  const SharedFile file(path);
  if (is_first) file.write(0, text);
  int64_t written = 0;
  for (const auto& entry : header.entries) {
    const auto* table = rows_of(rows, entry.name);
    if (table || is_first)
      written += write_own(file, tensors.at(entry.name), pieces_of(entry, start, rows), table);
  }
  file.sync();
  auto expected = torch::full({1}, written, torch::kLong);
  group.sum(expected);
  if (!is_first) return {};
  Reader reader(path);
  reader.skip(start);
  int64_t found = 0;
  for (const auto& entry : header.entries)
    for (const auto& piece : pieces_of(entry, start, rows)) found += reader.bits_of_next(piece);
  ensure(found == expected.item<int64_t>(), path,
         ": does not hold what the ranks have written; check the file system that they share");
  return reader.record();
}

namespace {

// With the names of the moments.
SplitRows with_moments(const SplitRows& tables) {
  auto rows = tables;
  for (const auto& [name, table] : tables)
    for (const char* moment : {"first.", "second."}) rows[moment + name] = table;
  return rows;
}

}  // namespace

std::function<FileRecord(const std::string&, const NamedTensors&)> write_rows_to(
    RankGroup& group, const SplitRows& tables) {
  return
      [&group, rows = with_moments(tables)](const std::string& path, const NamedTensors& tensors) {
        return write_split_tensors(group, path, tensors, rows);
      };
}

void write_rows(const CheckpointContent& content) {
  for (const auto* tensors : {&content.model, &content.optimizer}) content.write({}, *tensors);
}

void read_split_tensors(const std::string& path, const NamedTensors& tensors,
                        const SplitRows& rows) {
  const auto whole = load_safetensors_header(path);
  InputFile file(path);
  const int64_t start = file.size() - (whole.entries.empty() ? 0 : whole.entries.back().end);
  const torch::NoGradGuard no_grad;
  for (const auto& expected : whole_header(tensors, rows).entries) {
    const auto entry =
        std::find_if(whole.entries.begin(), whole.entries.end(),
                     [&](const auto& candidate) { return candidate.name == expected.name; });
    ensure(entry != whole.entries.end() && entry->shape == expected.shape &&
               entry->dtype == expected.dtype,
           path, ": has no float32 tensor ", in_quotes(expected.name), " ", times(expected.shape));
    const auto pieces = pieces_of(*entry, start, rows);
    const auto* table = rows_of(rows, entry->name);
    auto target = tensors.at(entry->name);
    auto values = torch::empty(target.sizes(), torch::kFloat);
    auto* bytes = static_cast<char*>(values.data_ptr());
    for (int64_t i = 0; i < (table ? values.size(0) : 1); ++i) {
      const auto& piece = pieces[table ? table->rows[i] : 0];
      file.seek(piece.begin);
      file.read(bytes + i * piece.bytes, piece.bytes);
    }
    require_finite({{entry->name, values}}, path);
    target.copy_(values);
  }
}

void read_rows(const std::string& checkpoint, const CheckpointContent& content,
               const SplitRows& tables) {
  const auto rows = with_moments(tables);
  read_split_tensors(checkpoint + "/model.safetensors", content.model, rows);
  read_split_tensors(checkpoint + "/optimizer.safetensors", content.optimizer, rows);
}

NewestWhole newest_of_first(RankGroup& group, const std::string& directory) {
  NewestWhole newest;
  if (group.rank() == 0) newest = newest_verified(directory);
  const auto path = group.text_of_first(newest.checkpoint ? newest.checkpoint->path : "");
  if (group.rank() > 0 && !path.empty()) newest.checkpoint = without_tensors(find_checkpoint(path));
  return newest;
}

}  // namespace translution
