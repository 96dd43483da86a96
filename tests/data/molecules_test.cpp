#include "translution/data/molecules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/data/idx_files.h"
#include "translution/data/cloud_text.h"

namespace translution {
namespace {

using testing::Directory;
using ::testing::ElementsAre;
using testing::message_of;

constexpr const char* kTwo =
    "0001.xyz 2 -417.031\nC 1.041682 -0.056200 -0.071481\nH 2.130894 0 0\n"
    "0002.xyz 1 -7\nS 0 0 1e-3\n";

TEST(Molecules, OfAListBecomeClouds) {
  const auto molecules = parse_molecules(kTwo, "qm7.txt");
  ASSERT_EQ(molecules.size(), 2u);
  EXPECT_THAT(molecules[0].charges, ElementsAre(6, 1));
  EXPECT_THAT(elements_in(molecules), ElementsAre("H", "C", "S"));
  EXPECT_EQ(molecules_text(molecules, {1, 0}, AtomFeatures::element),
            "axes 3\ntargets numbers\nfeatures H C S\n"
            "cloud -7 1  # 0002.xyz\n0 0 1e-3  0 0 1\n"
            "cloud -417.031 2  # 0001.xyz\n1.041682 -0.056200 -0.071481  0 1 0\n"
            "2.130894 0 0  1 0 0\n");
  const auto text =
      parse_cloud_text(molecules_text(molecules, {0}, AtomFeatures::charge), "train.txt");
  EXPECT_THAT(text.features, ElementsAre("charge"));
  EXPECT_THAT(text.clouds[0].features, ElementsAre(6, 1));
  EXPECT_THAT(text.numbers, ElementsAre(-417.031));
}

TEST(Molecules, AreSplitTheSameWayEveryTime) {
  const auto split = split_molecules(50, 0.1);
  // Fixed numbers: results with a split must stay comparable.
  EXPECT_THAT(split.val, ElementsAre(25, 30, 11, 14, 1));
  std::set<int64_t> all(split.val.begin(), split.val.end());
  all.insert(split.train.begin(), split.train.end());
  EXPECT_EQ(all.size(), 50u);
  EXPECT_EQ(split.train.size(), 45u);
  EXPECT_EQ(message_of<std::invalid_argument>([] { split_molecules(4, 0.1); }),
            "expected at least one molecule in each part, got 4 for training and 0 for validation");
}

TEST(Molecules, OfXyzFilesHaveTheirEnergiesInAList) {
  const Directory directory;
  directory.write("a.xyz", "2\n\nC 1 2 3 0.1\nH 1 2 4 0.2\n\n");
  directory.write("b.xyz", "1\nwater\nO 0 0 0");
  directory.write("notes.txt", "x");
  const std::string list = directory.path + "/energies";
  directory.write("energies", "# kcal/mol\nqm7/b.xyz -5.5 -6\na.xyz -7\n");
  const auto molecules = read_xyz_directory(directory.path, list);
  ASSERT_EQ(molecules.size(), 2u);
  EXPECT_EQ(molecules[0].name, "b.xyz");
  EXPECT_EQ(molecules[0].energy, "-5.5");
  EXPECT_THAT(molecules[1].charges, ElementsAre(6, 1));
  EXPECT_THAT(molecules[1].positions[1], ElementsAre("1", "2", "4"));

  const auto refusal = [&](const std::string& energies) {
    directory.write("energies", energies);
    return message_of<std::runtime_error>([&] { read_xyz_directory(directory.path, list); });
  };
  EXPECT_EQ(refusal("a.xyz 1\n"), list + ": has no energy of " + directory.path + "/b.xyz");
  EXPECT_EQ(refusal("a.xyz 1\na.xyz 1\n"),
            list + ":2: " + directory.path + " has no file 'a.xyz', or an earlier line names it");
  EXPECT_EQ(refusal("a.xyz\n"), list + ":1: expected 'FILE ENERGY', got 'a.xyz'");
  EXPECT_EQ(refusal("a.xyz x\n"), list + ":1: expected an energy, got 'x'");
}

struct WrongMolecule {
  const char* text;
  const char* message;
};

TEST(Molecules, ReportEveryMistakeWithItsLine) {
  const WrongMolecule wrong_lists[] = {
      {"", "a: has no molecules; expected lines 'NAME ATOMS ENERGY'"},
      {"m 1\n", "a:1: expected 'NAME ATOMS ENERGY', got 'm 1'"},
      {"m 0 1\n", "a:1: expected a number of atoms, got '0'"},
      {"m 1 nan\nH 0 0 0\n", "a:1: expected an energy, got 'nan'"},
      {"m 2 1\nH 0 0 0\n", "a:2: expected 2 atoms, the file ends after 1"},
      {"m 1 1\nH 0 0\n", "a:2: expected 'ELEMENT X Y Z', got 'H 0 0'"},
      {"m 1 1\nH 0 0 0 0\n", "a:2: expected 'ELEMENT X Y Z', got 'H 0 0 0 0'"},
      {"m 1 1\nXx 0 0 0\n", "a:2: expected a chemical element, got 'Xx'"},
      {"m 1 1\nH 0 0 1*^2\n", "a:2: expected a coordinate, got '1*^2'"}};
  for (const auto& [text, message] : wrong_lists)
    EXPECT_EQ(message_of<std::runtime_error>([t = text] { parse_molecules(t, "a"); }), message);
  const WrongMolecule wrong_files[] = {
      {"", "a: is not an .xyz file: expected the number of atoms in the first line"},
      {"water\n", "a:1: expected a number of atoms, got 'water'"},
      {"1\n", "a:1: expected 1 atoms, the file ends after 0"},
      {"1\n\nH 0 0 0\nH 0 0 0\n",
       "a:4: expected the end of the file after 1 atoms, got 'H 0 0 0'"}};
  for (const auto& [text, message] : wrong_files)
    EXPECT_EQ(message_of<std::runtime_error>([t = text] { parse_xyz(t, "a"); }), message);
}

}  // namespace
}  // namespace translution
