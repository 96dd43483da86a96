#pragma once

namespace translution::cli {

/// The versions of the program and of LibTorch, and the commit that the program was built from.
/// Defined in a file of their own, so that a commit costs the compilation of that one.
extern const char* const kVersion;       ///< "0.1.0"
extern const char* const kTorchVersion;  ///< "1.13.0"
extern const char* const kCommit;        ///< "commit f895033", "commit f895033-dirty"

}  // namespace translution::cli
