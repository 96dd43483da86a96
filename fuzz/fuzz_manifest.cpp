// Manifests of checkpoints: any bytes are either rejected with std::runtime_error, or can be
// written and read again. They are also tried with a valid checksum in front; otherwise only the
// checksum would be tested.

#include <stdexcept>

#include "translution/train/manifest.h"

namespace {

void try_text(std::string_view text) {
  translution::Manifest manifest;
  try {
    manifest = translution::parse_manifest(text);
  } catch (const std::runtime_error&) {
    return;
  }
  const auto again = translution::parse_manifest(translution::format_manifest(manifest));
  if (again.step != manifest.step || again.state != manifest.state) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_text(bytes);
  try_text(translution::seal_manifest(bytes));
  return 0;
}
