#pragma once

#include <ATen/core/Tensor.h>

namespace translution {

/// at::empty and at::zeros for the large temporaries and tables of the CPU. From 1 MB on, memory is
/// taken in pages of 2 MB, where the system has them, and kept for the next tensor of that size
/// when it is freed: a step of vit-a/12 with Translution at batch 64 took 1.4 to 1.8 times as long
/// without (touching a fresh gigabyte in pages of 4 KB costs 0.4 s). At most a quarter of the
/// machine's memory is kept so.
at::Tensor large_empty(at::IntArrayRef sizes, const at::TensorOptions& options);
at::Tensor large_zeros(at::IntArrayRef sizes, const at::TensorOptions& options);

/// Gives back to the system what is kept but not in use; returns how many bytes that were.
size_t release_kept_memory();

}  // namespace translution
