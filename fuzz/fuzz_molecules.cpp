// Any text as an .xyz file or a list of molecules; what is written from the list can be read as
// clouds.

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "translution/data/cloud_text.h"
#include "translution/data/molecules.h"

namespace {

// A coordinate may be too large for float32, so that the text is refused.
void read_back(const std::vector<translution::Molecule>& molecules) {
  const auto text = translution::molecules_text(molecules, {0}, translution::AtomFeatures::element);
  const auto clouds = translution::parse_cloud_text(text, "text");
  if (clouds.clouds.size() != 1) std::abort();
  if (clouds.clouds[0].size() != static_cast<int64_t>(molecules[0].charges.size())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    translution::parse_xyz(text, "input");
  } catch (const std::runtime_error&) {
  }
  try {
    read_back(translution::parse_molecules(text, "input"));
  } catch (const std::runtime_error&) {
  }
  return 0;
}
