#pragma once

namespace translution::cli {

/// The versions of the program and of LibTorch, and the commit that the program was built from.
/// Defined in version.cpp alone, so that a new commit recompiles only that file.
extern const char* const kVersion;       ///< "0.1.0"
extern const char* const kTorchVersion;  ///< "1.13.0"
extern const char* const kCommit;        ///< "commit f895033", "commit f895033-dirty"

}  // namespace translution::cli
