#pragma once

#include <string>

namespace translution::cli {

/// Where and by what a run was trained; lies in its directory as run.json.
struct RunRecord {
  std::string machine, commit;
  std::string precision = "float32";  ///< of products; records from before the choice have none
};

void write_run_record(const std::string& directory, const RunRecord& record);
/// Empty texts where there is none.
RunRecord read_run_record(const std::string& directory);

/// "Intel(R) Xeon(R) Processor, 2 threads".
std::string machine_text(int threads);

}  // namespace translution::cli
