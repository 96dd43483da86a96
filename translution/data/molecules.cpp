#include "translution/data/molecules.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/core/random.h"
#include "translution/data/text_lines.h"
#include "translution/io/file.h"

namespace translution {

using namespace detail;

namespace {

namespace fs = std::filesystem;

// In order of nuclear charge, from 1.
constexpr const char* kElements[] = {
    "H",  "He", "Li", "Be", "B",  "C",  "N",  "O",  "F",  "Ne", "Na", "Mg", "Al", "Si", "P",
    "S",  "Cl", "Ar", "K",  "Ca", "Sc", "Ti", "V",  "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn",
    "Ga", "Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Y",  "Zr", "Nb", "Mo", "Tc", "Ru", "Rh",
    "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I",  "Xe", "Cs", "Ba", "La", "Ce", "Pr", "Nd",
    "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W",  "Re",
    "Os", "Ir", "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn", "Fr", "Ra", "Ac", "Th",
    "Pa", "U",  "Np", "Pu", "Am", "Cm", "Bk", "Cf", "Es", "Fm", "Md", "No", "Lr", "Rf", "Db",
    "Sg", "Bh", "Hs", "Mt", "Ds", "Rg", "Cn", "Nh", "Fl", "Mc", "Lv", "Ts", "Og"};

constexpr const char* kCharge = "charge";  // a feature
constexpr uint64_t kSplitKey = 0x3016;     // of the split, which no seed of a run changes

int charge_of(std::string_view element) {
  const auto* const found = std::find(std::begin(kElements), std::end(kElements), element);
  return found == std::end(kElements) ? 0 : static_cast<int>(found - std::begin(kElements)) + 1;
}

std::string finite_number(const TextLines& lines, std::string_view word, const char* what) {
  const auto number = word_number<double>(word);
  if (!number || !std::isfinite(*number))
    refuse_file(lines.place(), "expected ", what, ", got ", in_quotes(word));
  return std::string(word);
}

int64_t atom_count(const TextLines& lines, std::string_view word) {
  const auto count = word_number<int64_t>(word);
  if (!count || *count < 1)
    refuse_file(lines.place(), "expected a number of atoms, got ", in_quotes(word));
  return *count;
}

// Reads `count` lines "ELEMENT X Y Z".
void read_atoms(TextLines& lines, int64_t count, bool more_columns, Molecule& molecule) {
  for (int64_t atom = 0; atom < count; ++atom) {
    if (!lines.next())
      refuse_file(lines.place(), "expected ", count, " atoms, the file ends after ", atom);
    const auto& words = lines.words();
    if (words.size() < 4 || (words.size() > 4 && !more_columns))
      refuse_file(lines.place(), "expected 'ELEMENT X Y Z', got ", in_quotes(lines.line()));
    const int charge = charge_of(words[0]);
    if (charge == 0)
      refuse_file(lines.place(), "expected a chemical element, got ", in_quotes(words[0]));
    molecule.charges.push_back(charge);
    molecule.positions.emplace_back();
    for (size_t axis = 0; axis < 3; ++axis)
      molecule.positions.back()[axis] = finite_number(lines, words[axis + 1], "a coordinate");
  }
}

std::string without_directories(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

// The .xyz files of a directory.
std::set<std::string> xyz_names(const std::string& directory) {
  std::error_code error;
  std::set<std::string> names;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (entry->path().extension() == ".xyz") names.insert(entry->path().filename().string());
  ensure(!error, directory, ": cannot be listed: ", error.message());
  ensure(!names.empty(), directory, ": has no .xyz files");
  return names;
}

std::string spaced(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::set<int> charges_in(const std::vector<Molecule>& molecules) {
  std::set<int> charges;
  for (const auto& molecule : molecules)
    charges.insert(molecule.charges.begin(), molecule.charges.end());
  return charges;
}

}  // namespace

std::vector<Molecule> parse_molecules(std::string_view text, const std::string& name) {
  std::vector<Molecule> molecules;
  TextLines lines(text, name);
  while (lines.next()) {
    const auto& words = lines.words();
    if (words.size() != 3)
      refuse_file(lines.place(), "expected 'NAME ATOMS ENERGY', got ", in_quotes(lines.line()));
    Molecule molecule{std::string(words[0]), finite_number(lines, words[2], "an energy"), {}, {}};
    read_atoms(lines, atom_count(lines, words[1]), false, molecule);
    molecules.push_back(std::move(molecule));
  }
  ensure(!molecules.empty(), name, ": has no molecules; expected lines 'NAME ATOMS ENERGY'");
  return molecules;
}

Molecule parse_xyz(std::string_view text, const std::string& name) {
  Molecule molecule{name, "", {}, {}};
  TextLines lines(text, name);
  ensure(lines.next_line() && lines.words().size() == 1, name,
         ": is not an .xyz file: expected the number of atoms in the first line");
  const int64_t count = atom_count(lines, lines.words()[0]);
  lines.next_line();  // a comment, often empty
  read_atoms(lines, count, true, molecule);
  if (lines.next())
    refuse_file(lines.place(), "expected the end of the file after ", count, " atoms, got ",
                in_quotes(lines.line()));
  return molecule;
}

std::vector<Molecule> read_xyz_directory(const std::string& directory,
                                         const std::string& energies) {
  auto unused = xyz_names(directory);
  std::vector<Molecule> molecules;
  const std::string text = read_file(energies);
  TextLines lines(text, energies);
  while (lines.next_uncommented()) {
    const auto& words = lines.words();
    if (words.size() < 2)
      refuse_file(lines.place(), "expected 'FILE ENERGY', got ", in_quotes(lines.line()));
    const auto file = without_directories(words[0]);
    const auto energy = finite_number(lines, words[1], "an energy");
    if (unused.erase(file) == 0)
      refuse_file(lines.place(), directory, " has no file ", in_quotes(file),
                  ", or an earlier line names it");
    const std::string path = directory + "/" + file;
    molecules.push_back(parse_xyz(read_file(path), path));
    molecules.back().name = file;
    molecules.back().energy = energy;
  }
  ensure(unused.empty(), energies, ": has no energy of ", directory, "/",
         unused.empty() ? "" : *unused.begin());
  return molecules;
}

MoleculeSplit split_molecules(int64_t count, double val_share) {
  const auto val = static_cast<int64_t>(std::llround(static_cast<double>(count) * val_share));
  require(0 < val && val < count, "expected at least one molecule in each part, got ", count - val,
          " for training and ", val, " for validation");
  const auto order = permutation(count, Random({kSplitKey}));
  return {{order.begin() + val, order.end()}, {order.begin(), order.begin() + val}};
}

std::vector<std::string> elements_in(const std::vector<Molecule>& molecules) {
  std::vector<std::string> names;
  for (const int charge : charges_in(molecules)) names.emplace_back(kElements[charge - 1]);
  return names;
}

PointCloud cloud_of(const Molecule& molecule, const std::vector<std::string>& features) {
  PointCloud cloud{3, static_cast<int64_t>(features.size()), {}, {}};
  const bool is_charge = features == std::vector<std::string>{kCharge};
  for (size_t atom = 0; atom < molecule.charges.size(); ++atom) {
    const int charge = molecule.charges[atom];
    const std::string element = kElements[charge - 1];
    ensure(is_charge || std::find(features.begin(), features.end(), element) != features.end(),
           molecule.name, ": expected atoms with the features ", spaced(features), ", got ",
           element);
    for (const auto& number : molecule.positions[atom])
      cloud.positions.push_back(static_cast<float>(*word_number<double>(number)));
    for (const auto& name : features)
      cloud.features.push_back(is_charge ? static_cast<float>(charge) : name == element ? 1 : 0);
  }
  return cloud;
}

std::string molecules_text(const std::vector<Molecule>& all, const std::vector<int64_t>& chosen,
                           AtomFeatures features) {
  const auto charges = charges_in(all);
  std::string text = "axes 3\ntargets numbers\nfeatures";
  if (features == AtomFeatures::charge) text += join(" ", kCharge);
  for (const auto& name : elements_in(all))
    if (features == AtomFeatures::element) text += " " + name;
  text += '\n';
  for (const int64_t number : chosen) {
    const auto& molecule = all.at(number);
    text +=
        join("cloud ", molecule.energy, " ", molecule.charges.size(), "  # ", molecule.name, "\n");
    for (size_t atom = 0; atom < molecule.charges.size(); ++atom) {
      for (const auto& number_text : molecule.positions[atom]) text += number_text + " ";
      if (features == AtomFeatures::charge) text += " " + std::to_string(molecule.charges[atom]);
      for (const int charge : charges)
        if (features == AtomFeatures::element)
          text += charge == molecule.charges[atom] ? " 1" : " 0";
      text += '\n';
    }
  }
  return text;
}

}  // namespace translution
