#pragma once

#include <string>

namespace translution::cli {

/// Machine and program of a run; stored as run.json in its directory.
struct RunRecord {
  std::string machine, commit;
  std::string precision = "float32";  ///< of matrix products; older records have none
};

void write_run_record(const std::string& directory, const RunRecord& record);
/// Empty texts if the run has no record.
RunRecord read_run_record(const std::string& directory);

/// "Intel(R) Xeon(R) Processor, 2 threads".
std::string machine_text(int threads);

}  // namespace translution::cli
