#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/names.h"

namespace translution {

/// Element types of safetensors that LibTorch has.
enum class Dtype { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

inline constexpr Named<Dtype> kDtypes[] = {
    {Dtype::f64, "F64", "double"},         {Dtype::f32, "F32", "float"},
    {Dtype::f16, "F16", "IEEE half"},      {Dtype::bf16, "BF16", "upper half of a float"},
    {Dtype::i64, "I64", "signed integer"}, {Dtype::i32, "I32", "signed integer"},
    {Dtype::i16, "I16", "signed integer"}, {Dtype::i8, "I8", "signed integer"},
    {Dtype::u8, "U8", "unsigned integer"}, {Dtype::boolean, "BOOL", "a byte, 0 or 1"},
};

int64_t byte_size(Dtype dtype);  ///< of an element

struct SafetensorsEntry {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  ///< bytes, counted from the end of the header
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the order of their bytes
  SafetensorsMetadata metadata;
};

/// A file starts with the length of the header in 8 bytes, then comes the header, then the tensors.
inline constexpr int64_t kLengthBytes = 8;

/// Of the header, without the 8 bytes, from the start of a file of that size; one line where the
/// file is too short for it, or it exceeds the 100 MB of the format.
int64_t safetensors_header_length(std::string_view start, int64_t file_size);

/// The header of a file of that size, from its start up to the tensors at least. Whatever breaks a
/// rule of the format is refused with one line, without a path: the tensors that come back fill the
/// rest of the file without a gap, and none overlaps another.
SafetensorsHeader parse_safetensors_header(std::string_view start, int64_t file_size);

/// The start of a file up to the tensors, padded with spaces so that they begin at a multiple of 8.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace translution
