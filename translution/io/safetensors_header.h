#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/names.h"

namespace translution {

/// The safetensors element types that LibTorch supports.
enum class SafetensorsType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

inline constexpr Named<SafetensorsType> kDtypes[] = {
    {SafetensorsType::f64, "F64", "double"},
    {SafetensorsType::f32, "F32", "float"},
    {SafetensorsType::f16, "F16", "IEEE half"},
    {SafetensorsType::bf16, "BF16", "bfloat16"},
    {SafetensorsType::i64, "I64", "signed integer"},
    {SafetensorsType::i32, "I32", "signed integer"},
    {SafetensorsType::i16, "I16", "signed integer"},
    {SafetensorsType::i8, "I8", "signed integer"},
    {SafetensorsType::u8, "U8", "unsigned integer"},
    {SafetensorsType::boolean, "BOOL", "a byte, 0 or 1"},
};

TRANSLUTION_API int64_t byte_size(SafetensorsType dtype);  ///< of one element

struct SafetensorsEntry {
  std::string name;
  SafetensorsType dtype = SafetensorsType::f32;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  ///< bytes, counted from the end of the header
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< sorted by byte offset
  SafetensorsMetadata metadata;
};

/// A file consists of the header's length in 8 bytes, the header, and the tensors.
inline constexpr int64_t kLengthBytes = 8;

/// The length of the header without the 8 bytes; `start` is at least the first 8 bytes of the file.
/// Throws std::runtime_error if the file is too short, or the header exceeds the format's 100 MB.
TRANSLUTION_API int64_t safetensors_header_length(std::string_view start, int64_t file_size);

/// Parses the header; `start` contains the file at least up to the tensors. Throws
/// std::runtime_error, without a path in the message, for any violation of the format: the returned
/// tensors cover the rest of the file without gaps or overlaps.
TRANSLUTION_API SafetensorsHeader parse_safetensors_header(std::string_view start,
                                                           int64_t file_size);

/// A header of tensors of these names, types and shapes, in the order of a file that
/// save_safetensors writes: by element size, largest first, then as given.
SafetensorsHeader lay_out(std::vector<SafetensorsEntry> entries);

/// The file's bytes up to the tensors, padded with spaces so that the tensors begin at a multiple
/// of 8.
TRANSLUTION_API std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace translution
