#pragma once

#include <memory>
#include <string>
#include <vector>

#include "translution/io/lock.h"
#include "translution/io/working_file.h"
#include "translution/models/network.h"
#include "translution/train/adamw.h"
#include "translution/train/offload_mark.h"

namespace translution {

/// The weights of a network and AdamW's moments in mapped files, for training a network larger than
/// memory. The directory holds
///   embedding.state, block-0000.state …, head.state   a file per layer: weights, first, second
///   offload.json                                      the mark (train/offload_mark.h)
/// The files are working memory: they are new at every start, and filled from random weights or a
/// checkpoint. A layer's pages are resident only while the layer is in use.
class Offload {
 public:
  /// Locks the directory and allocates the files. Call check_offload (offload_check.h) before: it
  /// refuses an unusable directory and a disk that is too small.
  Offload(const std::string& directory, const ModelOptions& model);

  /// A new network whose parameters are in the files. Each block is moved there before the next one
  /// is built. The weights are the same as those of Network(model, generator).
  Network build(const at::Generator& generator);
  /// Makes the moments of the optimizer, all zero, part of the files.
  void attach(AdamW::State& state) const;
  /// Fills weights and moments from a checkpoint, one tensor at a time.
  void load(const std::string& checkpoint) const;

  /// Called when weights and moments are those after `step`, and before the first change of the
  /// next step.
  void whole_after(int64_t step) const { mark(step, /*updating=*/false); }
  void updates_after(int64_t step) const { mark(step, /*updating=*/true); }
  /// The mark that an earlier process left.
  const OffloadMark& found() const { return found_; }

  /// The layers are those of parameter_layers (clip.h). Starts to read the weights, or the moments.
  void prefetch_weights(size_t layer) const;
  void prefetch_moments(size_t layer) const;
  /// Ends a layer's share of the resident memory, with its copies packed for bfloat16.
  void release(size_t layer) const;
  void release_all() const;
  void drop_packed_copies(size_t layer) const;
  /// Starts to write back changed pages and ends their share of the resident memory.
  void write_back(const at::Tensor& tensor) const;
  /// The same without starting to write; ignores bytes that are not in the files.
  void release(std::string_view bytes) const;

 private:
  // The tensors of one parameter.
  struct Entry {
    std::string name;
    torch::Tensor weight, first, second;
  };
  struct Layer {
    std::shared_ptr<const WorkingFile> file;
    std::vector<Entry> entries;
    std::string_view weights, moments;  // bytes of the file
    std::vector<torch::Tensor> parameters;
  };

  static Layer make_layer(const std::string& path, const std::vector<ParameterSpec>& specs);
  void take(torch::nn::Module& part, const std::string& prefix);
  const Entry& entry(const std::string& name) const;
  void mark(int64_t step, bool updating) const;

  const std::string directory_;
  const ModelOptions model_;
  const DirectoryLock lock_;
  const OffloadMark found_;
  std::vector<Layer> layers_;
  std::vector<std::string> names_;  // of all parameters, in the order of the network
};

}  // namespace translution
