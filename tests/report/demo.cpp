// report_demo FILE: writes a report of the data in demo_data.h.
#include <cstdio>
#include <fstream>

#include "tests/report/demo_data.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: report_demo FILE\n", stderr);
    return 2;
  }
  std::ofstream file(argv[1]);
  file << translution::make_report(translution::demo_report());
  return file.flush() ? 0 : 1;
}
