#include "translution/weights/convert.h"

#include "translution/core/error.h"
#include "translution/models/check_weights.h"
#include "translution/models/settings.h"
#include "translution/weights/authors.h"

namespace translution {

using namespace detail;

namespace {

ConvertedModel convert_any(WeightFormat from, const std::map<std::string, std::string>& settings,
                           const NamedTensors& tensors, const std::string& source,
                           const std::string& prefix) {
  const auto theirs = without_prefix(tensors, "module.");
  const bool self_describing = from == WeightFormat::gpt2 || from == WeightFormat::timm;
  require(!self_describing || settings.empty(), name_of(kWeightFormats, from),
          " weights determine the model; remove ", prefix,
          settings.empty() ? "" : settings.begin()->first);
  if (from == WeightFormat::gpt2) return from_gpt2(theirs, source);
  if (from == WeightFormat::timm) return from_timm(theirs, source);
  const auto model = read_model(settings, prefix);
  if (from == WeightFormat::translution) return {model, theirs};
  const bool rope = theirs.count("translution.layers.0.0.rope.cos_cached") == 1;
  return {model, to_ours(authors_links(model, rope ? "rope" : ""), theirs, source)};
}

}  // namespace

ConvertedModel convert_weights(WeightFormat from,
                               const std::map<std::string, std::string>& settings,
                               const NamedTensors& tensors, const std::string& source,
                               const std::string& prefix) {
  auto model = convert_any(from, settings, tensors, source, prefix);
  require_finite(model.tensors, source);  // after conversion: their masks hold infinities
  return model;
}

NamedTensors in_authors_format(const ConvertedModel& model, const std::string& name,
                               const std::string& source) {
  return to_theirs(authors_links(model.options, name), model.tensors, source);
}

}  // namespace translution
