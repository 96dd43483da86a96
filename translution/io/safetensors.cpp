#include "translution/io/safetensors.h"

#include <torch/utils.h>

#include <algorithm>

#include "translution/core/error.h"
#include "translution/core/memory.h"
#include "translution/core/message.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"

namespace translution {

using namespace detail;

namespace {

constexpr std::pair<SafetensorsType, torch::ScalarType> kScalarTypes[] = {
    {SafetensorsType::f64, torch::kDouble}, {SafetensorsType::f32, torch::kFloat},
    {SafetensorsType::f16, torch::kHalf},   {SafetensorsType::bf16, torch::kBFloat16},
    {SafetensorsType::i64, torch::kLong},   {SafetensorsType::i32, torch::kInt},
    {SafetensorsType::i16, torch::kShort},  {SafetensorsType::i8, torch::kChar},
    {SafetensorsType::u8, torch::kByte},    {SafetensorsType::boolean, torch::kBool},
};

torch::ScalarType to_scalar_type(SafetensorsType dtype) {
  for (const auto& [ours, theirs] : kScalarTypes)
    if (ours == dtype) return theirs;
  throw std::logic_error("a dtype is missing in kScalarTypes");
}

SafetensorsEntry describe(const std::string& name, const torch::Tensor& tensor) {
  require(tensor.defined() && tensor.layout() == torch::kStrided, "safetensors: tensor ",
          in_quotes(name), ": expected a dense tensor, got an undefined or sparse one");
  for (const auto& [dtype, type] : kScalarTypes)
    if (type == tensor.scalar_type()) return {name, dtype, tensor.sizes().vec(), 0, 0};
  throw std::invalid_argument(join("safetensors: tensor ", in_quotes(name), ": the format has no ",
                                   tensor.scalar_type(), " elements"));
}

std::vector<SafetensorsEntry> describe_all(const NamedTensors& tensors) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors) entries.push_back(describe(name, tensor));
  return entries;
}

// Using a bool whose byte is neither 0 nor 1 is undefined behaviour.
bool holds_bools(const torch::Tensor& tensor) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.data_ptr());
  return std::all_of(bytes, bytes + tensor.numel(), [](auto byte) { return byte <= 1; });
}

torch::Tensor read_tensor(InputFile& file, const SafetensorsEntry& entry) {
  auto tensor = torch::empty(entry.shape, to_scalar_type(entry.dtype));
  file.read(tensor.data_ptr(), entry.end - entry.begin);
  return tensor;
}

SafetensorsHeader read_header(InputFile& file, const std::string& where) {
  std::string start(std::min(kLengthBytes, file.size()), '\0');
  file.read(start.data(), start.size());
  const int64_t length =
      locate_errors(where, [&] { return safetensors_header_length(start, file.size()); });
  start.resize(kLengthBytes + length);
  file.read(start.data() + kLengthBytes, length);
  return locate_errors(where, [&] { return parse_safetensors_header(start, file.size()); });
}

}  // namespace

SafetensorsHeader load_safetensors_header(const std::string& path) {
  InputFile file(path);
  return read_header(file, path + ": ");
}

Safetensors load_safetensors(const std::string& path, const TensorConversion& convert) {
  InputFile file(path);
  ensure(convert || file.size() <= usable_bytes(), path, ": needs ", file.size(),
         " bytes of memory, only ", usable_bytes(), " are available; choose a smaller model");
  const auto header = read_header(file, path + ": ");
  Safetensors result{{}, header.metadata};
  for (const auto& entry : header.entries) {  // in the order of the file
    const auto tensor = read_tensor(file, entry);
    ensure(entry.dtype != SafetensorsType::boolean || holds_bools(tensor), path, ": tensor ",
           in_quotes(entry.name), " is BOOL and has a byte other than 0 and 1");
    result.tensors.emplace(entry.name, convert ? convert(entry.name, tensor) : tensor);
  }
  return result;
}

void write_safetensors(const NamedTensors& tensors, const SafetensorsMetadata& metadata,
                       const std::function<void(std::string_view)>& sink) {
  torch::NoGradGuard no_grad;
  auto header = lay_out(describe_all(tensors));
  header.metadata = metadata;
  sink(format_safetensors_header(header));
  for (const auto& entry : header.entries) {
    const auto plain = tensors.at(entry.name).cpu().resolve_neg().contiguous();
    sink({static_cast<const char*>(plain.data_ptr()), plain.nbytes()});
  }
}

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const SafetensorsMetadata& metadata) {
  AtomicFile file(path);
  write_safetensors(tensors, metadata, [&](std::string_view bytes) { file.write(bytes); });
  file.commit();
}

}  // namespace translution
