#include "translution/models/authors.h"

#include <algorithm>

#include "translution/core/error.h"
#include "translution/core/names.h"

namespace translution {

using namespace detail;

namespace {

constexpr const char* kSubsets[] = {"q", "k", "v", "qk", "qv", "kv", "qkv"};
constexpr int64_t kRelativeDim = 16;  // dim_relenc of their constructors

struct Size {
  const char* theirs;
  const char* ours;
};
constexpr Size kSizes[] = {
    {"tiny", "a"}, {"mini", "b"}, {"small", "c"}, {"base", "base"}, {"large", "large"}};

// The name without patch size or length: "lor_qkv_tiny" for "lor_qkv_tiny/56".
std::string stem_of(const std::string& name) { return name.substr(0, name.find_first_of("/-")); }

Position relative(const std::string& roles, bool low_rank, bool rotary) {
  Position position;
  position.method = low_rank ? Method::alpha_translution : Method::translution;
  position.roles = Roles::parse(roles);
  position.relative_dim = kRelativeDim;
  position.mixing = low_rank ? Mixing::mean : Mixing::sum;
  position.rotary = rotary;
  return position;
}

}  // namespace

std::vector<std::string> authors_families() {
  std::vector<std::string> families = {"former", "rope_former", "rope", "lor_rope"};
  for (const std::string prefix : {"", "lor_"})
    for (const char* roles : kSubsets) families.push_back(prefix + roles);
  return families;
}

Position authors_position(const std::string& family) {
  const auto families = authors_families();
  require(std::find(families.begin(), families.end(), family) != families.end(), "unknown family '",
          family, "'", name_hint(family, families));
  const bool low_rank = family.rfind("lor_", 0) == 0;
  const std::string kind = low_rank ? family.substr(4) : family;
  Position position;
  if (kind == "former")
    position.method = Method::self_attention;
  else if (kind == "rope_former")
    position.method = Method::rotary;
  else
    position = relative(kind == "rope" ? "v" : kind, low_rank, family == "lor_rope");
  position.angles = Angles::in_float;
  return position;
}

void set_authors_family(ModelOptions& model, const std::string& family) {
  model.position = authors_position(family);
  model.input_embedding =
      family == "former" || (family == "rope_former" && model.family == Family::vit);
  model.rest = Method::rotary;
  model.init = Init::authors;
}

std::vector<std::string> authors_model_names() {
  std::vector<std::string> names;
  for (const auto& family : authors_families())
    for (const auto& size : kSizes) names.push_back(family + "_" + size.theirs);
  return names;
}

bool is_authors_model(const std::string& name) {
  const auto names = authors_model_names();
  return std::find(names.begin(), names.end(), stem_of(name)) != names.end();
}

ModelOptions authors_model(const std::string& name) {
  const std::string stem = stem_of(name);
  require(is_authors_model(name), "unknown model '", name, "'",
          name_hint(stem, authors_model_names()));
  const size_t split = stem.rfind('_');
  const std::string theirs = stem.substr(split + 1);
  const auto* size = std::find_if(std::begin(kSizes), std::end(kSizes),
                                  [&](const Size& s) { return theirs == s.theirs; });
  const std::string suffix = name.substr(stem.size());  // "/56", "-256" or empty
  auto model = ModelOptions::named((suffix.rfind('-', 0) == 0 ? "gpt-" : "vit-") +
                                   std::string(size->ours) + suffix);
  set_authors_family(model, stem.substr(0, split));
  return model;
}

}  // namespace translution
