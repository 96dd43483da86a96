#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/point_cloud.h"

namespace translution {

/// The atoms of a molecule and its energy. Numbers are as they were written.
struct Molecule {
  std::string name;                                   ///< "0001.xyz"
  std::string energy;                                 ///< empty: not known yet
  std::vector<int> charges;                           ///< of the nuclei
  std::vector<std::array<std::string, 3>> positions;  ///< of the atoms
};

/// Parses a list of molecules: for each a line "NAME ATOMS ENERGY", then a line "ELEMENT X Y Z" per
/// atom. Throws std::runtime_error with the line. Messages begin with `name`.
TRANSLUTION_API std::vector<Molecule> parse_molecules(std::string_view text,
                                                      const std::string& name);

/// Parses an .xyz file: the number of atoms, a comment, and a line "ELEMENT X Y Z" per atom, which
/// may have more columns.
TRANSLUTION_API Molecule parse_xyz(std::string_view text, const std::string& name);

/// Reads the .xyz files of a directory and the list of their energies: lines "FILE ENERGY", which
/// may have more columns. A file and its line belong together if they have the same name, without
/// directories. Molecules are in the order of the list.
TRANSLUTION_API std::vector<Molecule> read_xyz_directory(const std::string& directory,
                                                         const std::string& energies);

enum class AtomFeatures { element, charge };

struct MoleculeSplit {
  std::vector<int64_t> train, val;  ///< numbers of molecules, in a random order
};

/// Splits molecules at random: the same way for the same count and share, on every machine.
TRANSLUTION_API MoleculeSplit split_molecules(int64_t count, double val_share);

/// Molecules as text for `points:DIR` (parse_cloud_text): each is a cloud of atoms, with its energy
/// as target. Features are one per element of `all`, 1 for the atom's own, or the nuclear charge.
TRANSLUTION_API std::string molecules_text(const std::vector<Molecule>& all,
                                           const std::vector<int64_t>& chosen,
                                           AtomFeatures features);

/// A molecule as a cloud of atoms with these features: chemical elements, 1 for the atom's own, or
/// "charge", the nuclear charge. Throws std::runtime_error if an atom's element is none of them.
TRANSLUTION_API PointCloud cloud_of(const Molecule& molecule,
                                    const std::vector<std::string>& features);

/// The elements in the molecules in order of nuclear charge: "H", "C", …
TRANSLUTION_API std::vector<std::string> elements_in(const std::vector<Molecule>& molecules);

}  // namespace translution
