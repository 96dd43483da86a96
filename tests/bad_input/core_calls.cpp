#include <limits>

#include "tests/bad_input/wrong_calls.h"
#include "translution/core/names.h"
#include "translution/core/offsets.h"
#include "translution/core/pairs.h"
#include "translution/core/position.h"
#include "translution/core/roles.h"
#include "translution/ops/group.h"

namespace translution {
namespace {

constexpr int64_t kHugeGrid = std::numeric_limits<int64_t>::max();

// Checks a position with one change.
template <typename Change>
void check_position(Method method, Change change) {
  Position position;
  position.method = method;
  change(position);
  position.check();
}

std::vector<WrongCall> wrong_tables() {
  return {
      {"a grid without sides", [] { OffsetTable(OffsetOptions{}); },
       "offsets: expected a grid of one or more sides, got none"},
      {"a grid with a side of zero",
       [] {
         OffsetTable({{7, 0}});
       },
       "offsets: expected a grid with sides of 1 or more, got 7x0"},
      {"a grid with a negative side", [] { OffsetTable({{-3}}); },
       "offsets: expected a grid with sides of 1 or more, got -3"},
      {"a grid with too many tokens",
       [] {
         OffsetTable({{256, 256}});
       },
       "offsets: expected at most 65535 tokens, got a grid of 256x256"},
      {"a grid whose product overflows",
       [] {
         OffsetTable({{kHugeGrid, kHugeGrid, 2}});
       },
       "offsets: expected at most 65535 tokens, got a grid of "
       "9223372036854775807x9223372036854775807x2"},
      {"a negative radius",
       [] {
         OffsetTable({{3}, false, false, Encoding::relative, Sharing::direction, -1});
       },
       "offsets: expected a radius of 0 or more, got -1"},
      {"an absolute table that shares",
       [] {
         OffsetTable({{3}, false, false, Encoding::absolute, Sharing::direction, 1});
       },
       "offsets: expected sharing none, since encoding absolute has one slot per token pair"},
      {"counting the slots of a zero-sized grid", [] { count_slots({{0}}); },
       "offsets: expected a grid with sides of 1 or more, got 0"},
      {"counting the pairs of a zero-sized grid",
       [] {
         count_pairs({{4, 0}});
       },
       "offsets: expected a grid with sides of 1 or more, got 4x0"},
      {"the offset of a slot out of range", [] { OffsetTable({{2}}).offset(3); },
       "offsets: expected a slot from 0 to 2, got 3"},
      {"the name of a negative slot", [] { OffsetTable({{2}}).slot_name(-1); },
       "offsets: expected a slot from 0 to 2, got -1"},
  };
}

std::vector<WrongCall> wrong_relations() {
  return {
      {"a relation without tokens", [] { OffsetTable::from_relation({}, 0, 1); },
       "relation: expected 1 to 65535 tokens, got 0"},
      {"a relation of too many tokens", [] { OffsetTable::from_relation({0}, kHugeGrid, 1); },
       "relation: expected 1 to 65535 tokens, got 9223372036854775807"},
      {"a relation that is not square",
       [] {
         OffsetTable::from_relation({0, 0, 0}, 2, 1);
       },
       "relation: expected 4 entries for 2 tokens, got 3"},
      {"a relation without slots", [] { OffsetTable::from_relation({0}, 1, 0); },
       "relation: expected 1 or more slots, got 0"},
      {"a relation with an entry too large",
       [] {
         OffsetTable::from_relation({0, 1, 2, 0}, 2, 2);
       },
       "relation: expected -1 for no pair or 0 to 1, got 2 for pair (1, 0)"},
      {"a relation with an entry below -1",
       [] {
         OffsetTable::from_relation({0, -2, 0, 0}, 2, 2);
       },
       "relation: expected -1 for no pair or 0 to 1, got -2 for pair (0, 1)"},
      {"a relation whose reverse is not one",
       [] {
         OffsetTable::from_relation({0, 1, 1, 1, 0, 0, 0, 0, 0}, 3, 2);
       },
       "relation: slot 1 has key slot 1 for one pair and 0 for pair (0, 2); pass the key slot of "
       "each slot as `mirror`"},
      {"a mirror that is too short",
       [] {
         OffsetTable::from_relation({0, 1, 1, 0}, 2, 2, {0});
       },
       "relation: expected a mirror of 2 entries, one per slot, got 1"},
      {"a mirror with a slot out of range",
       [] {
         OffsetTable::from_relation({0, 1, 1, 0}, 2, 2, {0, 2});
       },
       "relation: expected mirror entries from 0 to 1, got 2"},
  };
}

std::vector<WrongCall> wrong_parts() {
  const auto pairs = [](const char* text) { return [text] { find_pairs({text}); }; };
  return {
      {"a part beyond the last", pairs("7x7 part=3/2"),
       "pairs: expected part=R/P with R from 0 to P - 1, got part=3/2"},
      {"a negative part", pairs("7x7 part=-1/2"),
       "pairs: expected part=R/P with R from 0 to P - 1, got part=-1/2"},
      {"a part of none", pairs("7x7 part=0/0"),
       "pairs: expected part=R/P with R from 0 to P - 1, got part=0/0"},
      {"a part of more than the slots", pairs("2 part=0/4"),
       "pairs: expected at most 3 parts, one slot each, got 4; use fewer processes for the slots"},
      {"a part without a number of parts", pairs("7x7 part=1"),
       "pairs: expected part=R/P with two numbers, got 'part=1'"},
      {"a part that is no number", pairs("7x7 part=a/2"),
       "pairs: expected part=R/P with two numbers, got 'part=a/2'"},
      {"a part before another word", pairs("7x7 part=0/2 cls"),
       "pairs: expected a text such as '7x7 cls', '160 causal' or 'causal', got '7x7 part=0/2 "
       "cls'"},
      {"a part of pairs without slots", pairs("causal part=0/2"),
       "pairs: expected slots to split into parts, got 'causal part=0/2'; leave out the part"},
      {"a part of slots that share a key slot", pairs("relation mirror=0,0 slots=0,1,1,0 part=0/2"),
       "pairs: expected slots with a key slot each to split them into parts, got several slots "
       "with key slot 0"},
      {"a group without a name", [] { (void)register_group("", {}); },
       "group: expected a name, got none"},
      {"a group whose name is in use",
       [] {
         const auto first = register_group("offset 0", {});
         const auto second = register_group("offset 0", {});
       },
       "group: the name 'offset 0' is in use; choose another"},
  };
}

std::vector<WrongCall> wrong_names() {
  return {
      {"an unknown method", [] { parse_name("method", kMethods, "transluton"); },
       "unknown method 'transluton'; did you mean 'translution'?"},
      {"an unknown sharing", [] { parse_name("sharing", kSharings, "log"); },
       "unknown sharing 'log'; did you mean 'logarithmic'?"},
      {"an empty name", [] { parse_name("mixing", kMixings, ""); },
       "unknown mixing ''; expected one of sum, mean"},
      {"empty roles", [] { Roles::parse(""); },
       "roles: expected some of q, k and v, or 'none', got an empty string"},
      {"roles with an unknown letter", [] { Roles::parse("qx"); },
       "roles: expected some of q, k and v, or 'none', got 'qx'"},
      {"a repeated role", [] { Roles::parse("qvq"); },
       "roles: expected each of q, k and v at most once, got 'qvq'"},
  };
}

std::vector<WrongCall> wrong_positions() {
  return {
      {"a negative relative_dim",
       [] { check_position(Method::alpha_translution, [](auto& p) { p.relative_dim = -1; }); },
       "relative_dim: expected 0 or more channels per head, got -1"},
      {"a negative relative_dim_out",
       [] { check_position(Method::alpha_translution, [](auto& p) { p.relative_dim_out = -1; }); },
       "relative_dim_out: expected 0 (same as relative_dim) or more channels per head, got -1"},
      {"a relative_dim_out without matrices",
       [] {
         check_position(Method::alpha_translution, [](auto& p) {
           p.relative_dim = 0;
           p.relative_dim_out = 4;
         });
       },
       "relative_dim_out: expected 0, since relative_dim is 0 and there are no matrices, got "
       "4"},
      {"a negative radius of a position",
       [] { check_position(Method::translution, [](auto& p) { p.radius = -2; }); },
       "radius: expected 0 or more, got -2"},
      {"a window without convolution",
       [] { check_position(Method::translution, [](auto& p) { p.sharing = Sharing::window; }); },
       "sharing: expected none, direction or logarithmic; window is for points and for "
       "convolution"},
      {"an absolute encoding that shares",
       [] {
         check_position(Method::translution, [](auto& p) {
           p.encoding = Encoding::absolute;
           p.sharing = Sharing::direction;
         });
       },
       "sharing: expected none, since encoding absolute has one slot per token pair"},
      {"alpha with nothing left",
       [] {
         check_position(Method::alpha_translution, [](auto& p) {
           p.relative_dim = 0;
           p.shared_qkv = false;
         });
       },
       "alpha_translution: expected relative_dim above 0 or shared_qkv, got neither"},
      {"an even kernel",
       [] { check_position(Method::convolution, [](auto& p) { p.kernel_size = 4; }); },
       "convolution: expected an odd kernel_size of 1 or more, got 4"},
      {"a negative kernel",
       [] { check_position(Method::convolution, [](auto& p) { p.kernel_size = -1; }); },
       "convolution: expected an odd kernel_size of 1 or more, got -1"},
      {"an absolute convolution",
       [] {
         check_position(Method::convolution, [](auto& p) { p.encoding = Encoding::absolute; });
       },
       "convolution: expected encoding relative, got absolute"},
      {"rotary with relative queries",
       [] { check_position(Method::translution, [](auto& p) { p.rotary = true; }); },
       "rotary: translution with roles qkv has no shared queries and keys to rotate; expected "
       "roles "
       "v or none"},
      {"rotary with alpha alone",
       [] {
         check_position(Method::alpha_translution, [](auto& p) {
           p.rotary = true;
           p.shared_qkv = false;
         });
       },
       "rotary: alpha_translution without shared_qkv has no shared queries and keys to rotate; set "
       "shared_qkv or leave rotary off"},
      {"a gate with an absolute encoding",
       [] {
         check_position(Method::gated_position, [](auto& p) { p.encoding = Encoding::absolute; });
       },
       "gated_position: expected encoding relative and sharing none, since its features are "
       "offsets"},
  };
}

}  // namespace

std::vector<WrongCall> wrong_core_calls() {
  std::vector<WrongCall> all;
  for (const auto& calls :
       {wrong_tables(), wrong_relations(), wrong_parts(), wrong_names(), wrong_positions()})
    all.insert(all.end(), calls.begin(), calls.end());
  return all;
}

}  // namespace translution
