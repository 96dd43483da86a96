#pragma once

#include <string>
#include <utility>
#include <vector>

namespace translution::testing {

/// Files with a wrong size, offset or value that the program must detect: a description and the
/// bytes. `whole` is a valid file to derive them from.
using Lies = std::vector<std::pair<std::string, std::string>>;

Lies idx_lies();
Lies gzip_lies();
Lies safetensors_lies(const std::string& whole);
Lies manifest_lies(const std::string& whole);
Lies jpeg_lies(const std::string& whole);
Lies png_lies();
Lies meta_lies();
Lies molecule_lies();
Lies encoder_lies(const std::string& whole);
Lies toml_lies();

}  // namespace translution::testing
