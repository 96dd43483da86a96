#include "apps/translution/reproduce/run_record.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "translution/core/error.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"

namespace translution::cli {

using namespace detail;

namespace {

std::string path_of(const std::string& directory) { return directory + "/run.json"; }

// As Linux names it.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

}  // namespace

void write_run_record(const std::string& directory, const RunRecord& record) {
  const nlohmann::ordered_json json = {
      {"machine", record.machine}, {"commit", record.commit}, {"precision", record.precision}};
  write_file_atomically(path_of(directory), json.dump(1) + "\n");
}

RunRecord read_run_record(const std::string& directory) {
  const std::string path = path_of(directory);
  if (!std::filesystem::exists(path)) return {};
  try {
    const auto json = nlohmann::json::parse(read_file(path));
    return {json.at("machine"), json.at("commit"), json.value("precision", RunRecord().precision)};
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(path +
                             ": expected an object with machine and commit; remove the file");
  }
}

std::string machine_text(int threads) {
  return join(processor(), ", ", threads, threads == 1 ? " thread" : " threads");
}

}  // namespace translution::cli
