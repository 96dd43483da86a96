#include "version.h"

#include <commit.h>
#include <torch/version.h>

namespace translution::cli {

const char* const kVersion = TRANSLUTION_VERSION;
const char* const kTorchVersion = TORCH_VERSION;
const char* const kCommit = "commit " TRANSLUTION_COMMIT;

}  // namespace translution::cli
