#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "commands.h"
#include "data_commands.h"
#include "model_flags.h"
#include "table.h"
#include "translution/core/error.h"
#include "translution/core/names.h"
#include "translution/core/units.h"
#include "translution/data/molecules.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr const char* kMoleculesExamples =
    "FROM is a list of molecules as in qm7.txt: a line 'NAME ATOMS ENERGY' each, then a line\n"
    "'ELEMENT X Y Z' per atom. Or it is a directory of .xyz files, with their energies in a file\n"
    "of lines 'FILE ENERGY'. Writes train.txt and val.txt, which `translution train --data\n"
    "points:DIR` reads. The split is random, and the same in every call with as many molecules.\n"
    "\n"
    "Examples:\n"
    "  translution data molecules qm7.txt --out data/qm7\n"
    "  translution data molecules qm7 --energies hof_qm7.txt --features charge --out data/qm7";

constexpr Named<AtomFeatures> kAtomFeatures[] = {{AtomFeatures::element, "element", ""},
                                                 {AtomFeatures::charge, "charge", ""}};
constexpr double kMoleculesValShare = 0.1;

struct MoleculesFlags {
  explicit MoleculesFlags(Command command) {
    command.argument("FROM", from, "list of molecules, or directory of .xyz files");
    out = command.option("--out", "DIR", "directory of the data, created if missing");
    command.require_one_of({out});
    energies = command.option("--energies", "FILE", "energies of the .xyz files (none)");
    features = command.option(
        "--features", choices_text(kAtomFeatures),
        "of an atom: one number per element, 1 for its own, or the nuclear charge (element)");
    val_share = command.option(
        "--val-share", "X",
        fmt::format("share of the molecules for validation ({})", kMoleculesValShare));
  }

  std::string from;
  Option out, energies, features, val_share;
};

std::vector<Molecule> read_all_molecules(const MoleculesFlags& flags) {
  const bool directory = std::filesystem::is_directory(flags.from);
  require(directory || !flags.energies.given(), "--energies: expected a directory of .xyz files, ",
          flags.from, " is none");
  require(!directory || flags.energies.given(), flags.from,
          " is a directory: expected --energies FILE with the energies of its .xyz files");
  return directory ? read_xyz_directory(flags.from, value_of(flags.energies).text)
                   : parse_molecules(read_file(flags.from), flags.from);
}

void run_molecules(const MoleculesFlags& flags) {
  const auto features = flags.features.given()
                            ? parse_name("features", kAtomFeatures, value_of(flags.features).text)
                            : AtomFeatures::element;
  const double share =
      flags.val_share.given() ? value_of(flags.val_share).real(0, 1) : kMoleculesValShare;
  const std::string out = value_of(flags.out).text;
  const auto molecules = read_all_molecules(flags);
  const auto split = split_molecules(static_cast<int64_t>(molecules.size()), share);

  // Returns a row of the table.
  const auto write = [&](const std::string& name, const std::vector<int64_t>& chosen) {
    write_file_atomically(out + "/" + name, molecules_text(molecules, chosen, features));
    int64_t atoms = 0;
    for (const int64_t m : chosen) atoms += static_cast<int64_t>(molecules[m].charges.size());
    return std::vector{name, grouped(static_cast<int64_t>(chosen.size())), grouped(atoms)};
  };
  Table table({{"file"}, {"molecules", Align::right}, {"atoms", Align::right}});
  make_directories(out);
  const auto val = write("val.txt", split.val);
  table.add(write("train.txt", split.train));  // last: without it, the directory is no data
  table.add(val);
  fmt::print("{}: {} molecules of {}\n\n{}", out, grouped(static_cast<int64_t>(molecules.size())),
             fmt::join(elements_in(molecules), ", "), table.str());
}

}  // namespace

void add_data_molecules(Command data) {
  auto command = data.add_command("molecules", "Write molecules and their energies as points");
  const auto flags = std::make_shared<MoleculesFlags>(command);
  command.footer(kMoleculesExamples);
  command.run([flags] { run_molecules(*flags); });
}

}  // namespace translution::cli
