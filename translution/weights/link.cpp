#include "translution/weights/link.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/core/names.h"

namespace translution {

using namespace detail;

namespace {

// Tolerance of constants: above rounding errors, below the effect of another base or grid.
constexpr double kTolerance = 1e-4, kHalfTolerance = 1e-2;

std::string brackets(at::IntArrayRef shape) { return join(shape); }

const at::Tensor& find(const NamedTensors& tensors, const std::string& name,
                       const std::string& expected, const std::string& source) {
  const auto found = tensors.find(name);
  ensure(found != tensors.end(), source, ": ", in_quotes(name), " ", expected,
         " is missing; check the model's name and options");
  return found->second;
}

void check_type(const std::string& name, const at::Tensor& tensor, at::ScalarType& type,
                const std::string& source) {
  ensure(tensor.defined() && !tensor.is_meta() && tensor.is_floating_point(), source, ": ",
         in_quotes(name), " must hold floating-point numbers, got ",
         tensor.defined() ? c10::toString(tensor.scalar_type()) : "nothing");
  if (type == at::ScalarType::Undefined) type = tensor.scalar_type();
  ensure(tensor.scalar_type() == type, source, ": ", in_quotes(name), " is ", tensor.scalar_type(),
         ", other tensors are ", type, "; convert all to one type first");
}

void check_no_others(const NamedTensors& tensors, const std::set<std::string>& known,
                     const std::string& source) {
  for (const auto& [name, tensor] : tensors)
    ensure(known.count(name) == 1, source, ": ", in_quotes(name), " ", brackets(tensor.sizes()),
           " is not a tensor of this model; check the model's name and options",
           name_hint(name, {known.begin(), known.end()}));
}

bool close(const at::Tensor& a, const at::Tensor& b) {
  const bool half = a.scalar_type() == at::kHalf || a.scalar_type() == at::kBFloat16;
  const double allowed = half ? kHalfTolerance : kTolerance;
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>() <= allowed;
}

at::Tensor read(const Link& link, const NamedTensors& theirs, at::ScalarType& type,
                const std::string& source) {
  const std::string expected = brackets(link.shape);
  const at::Tensor tensor = find(theirs, link.theirs, expected + " (" + link.meaning + ")", source);
  check_type(link.theirs, tensor, type, source);
  ensure(tensor.sizes() == link.shape, source, ": ", in_quotes(link.theirs), " is ",
         brackets(tensor.sizes()), ", expected ", expected, " (", link.meaning,
         "); check the model's name and options");
  ensure(!link.value.defined() || close(tensor, link.value), source, ": ", in_quotes(link.theirs),
         " does not hold ", link.meaning, " as this model requires; it cannot be converted");
  return tensor;
}

std::vector<at::Tensor> gather(const Link& link, const NamedTensors& ours, at::ScalarType& type,
                               const std::string& source) {
  std::vector<at::Tensor> parts;
  for (const auto& name : link.ours) {
    parts.push_back(find(ours, name, "(" + link.meaning + ")", source));
    check_type(name, parts.back(), type, source);
  }
  return parts;
}

// Checks the value that our tensors must have because their format has no tensor for them.
void check_implied(const Link& link, const std::vector<at::Tensor>& parts,
                   const std::string& source) {
  const auto expected = link.split(at::Tensor());
  for (size_t p = 0; p < parts.size(); ++p)
    ensure(at::equal(parts[p].to(at::kDouble), expected[p].to(at::kDouble)), source, ": ",
           in_quotes(link.ours[p]), " is not ", link.meaning,
           ", and the other format has no tensor for it");
}

at::Tensor write(const Link& link, const std::vector<at::Tensor>& parts,
                 const std::string& source) {
  const auto expected = link.split(at::empty(link.shape, parts.front().options()));
  for (size_t p = 0; p < parts.size(); ++p)
    ensure(parts[p].sizes() == expected[p].sizes(), source, ": ", in_quotes(link.ours[p]), " is ",
           brackets(parts[p].sizes()), ", expected ", brackets(expected[p].sizes()), " (",
           link.meaning, "); check the model's name and options");
  return link.join(parts).contiguous();
}

}  // namespace

Link same(const std::string& theirs, std::vector<int64_t> shape, const std::string& meaning,
          const std::string& ours, std::vector<int64_t> our_shape) {
  return rearranged(
      theirs, shape, meaning, ours,
      [our_shape](const at::Tensor& t) { return t.reshape(our_shape); },
      [shape](const at::Tensor& t) { return t.reshape(shape); });
}

Link stacked(const std::string& theirs, int64_t in, const std::vector<int64_t>& outs,
             const std::string& meaning, std::vector<std::string> ours) {
  const int64_t rows = std::accumulate(outs.begin(), outs.end(), int64_t{0});
  return {theirs,
          {rows, in},
          meaning,
          std::move(ours),
          [outs](const at::Tensor& t) {
            std::vector<at::Tensor> parts;
            for (const auto& part : t.split_with_sizes(outs, 0)) parts.push_back(part.t());
            return parts;
          },
          [](const auto& parts) {
            std::vector<at::Tensor> transposed;
            for (const auto& part : parts) transposed.push_back(part.t());
            return at::cat(transposed, 0);
          },
          {}};
}

Link side_by_side(const std::string& theirs, std::vector<int64_t> shape,
                  const std::vector<int64_t>& widths, const std::string& meaning,
                  std::vector<std::string> ours) {
  return {theirs,
          std::move(shape),
          meaning,
          std::move(ours),
          [widths](const at::Tensor& t) { return t.split_with_sizes(widths, -1); },
          [](const auto& parts) { return at::cat(parts, -1); },
          {}};
}

Link rearranged(const std::string& theirs, std::vector<int64_t> shape, const std::string& meaning,
                const std::string& ours, std::function<at::Tensor(const at::Tensor&)> to_our_layout,
                std::function<at::Tensor(const at::Tensor&)> to_their_layout) {
  return {theirs,
          std::move(shape),
          meaning,
          {ours},
          [to_our_layout](const at::Tensor& t) { return std::vector{to_our_layout(t)}; },
          [to_their_layout](const auto& parts) { return to_their_layout(parts[0]); },
          {}};
}

Link reordered(const std::string& theirs, std::vector<int64_t> shape, const std::string& meaning,
               const std::string& ours, const std::vector<int64_t>& rows) {
  const auto order = at::tensor(rows, at::kLong);
  const auto select = [](const at::Tensor& index) {
    return [index](const at::Tensor& t) { return t.index_select(0, index.to(t.device())); };
  };
  return rearranged(theirs, std::move(shape), meaning, ours, select(order.argsort()),
                    select(order));
}

Link constant(const std::string& theirs, const std::string& meaning, const at::Tensor& value) {
  return {theirs, value.sizes().vec(), meaning, {}, {}, {}, value};
}

void add_pair(Links& links, const std::string& theirs, const std::string& ours,
              const std::vector<int64_t>& shape, const std::string& meaning) {
  const std::vector<int64_t> rows = {shape.front()};
  links.push_back(same(theirs + ".weight", shape, meaning, ours + ".weight", shape));
  links.push_back(same(theirs + ".bias", rows, meaning, ours + ".bias", rows));
}

NamedTensors to_ours(const Links& links, const NamedTensors& theirs, const std::string& source) {
  NamedTensors ours;
  std::set<std::string> known;
  auto type = at::ScalarType::Undefined;
  for (const auto& link : links) {
    if (link.theirs.empty()) continue;
    known.insert(link.theirs);
    const auto tensor = read(link, theirs, type, source);
    if (link.ours.empty()) continue;
    const auto parts = link.split(tensor);
    for (size_t p = 0; p < parts.size(); ++p)
      ours[link.ours[p]] = parts[p].clone(at::MemoryFormat::Contiguous);
  }
  for (const auto& link : links) {
    if (!link.theirs.empty()) continue;
    const auto parts = link.split(at::Tensor());
    for (size_t p = 0; p < parts.size(); ++p) ours[link.ours[p]] = parts[p].to(type);
  }
  check_no_others(theirs, known, source);
  return ours;
}

NamedTensors to_theirs(const Links& links, const NamedTensors& ours, const std::string& source) {
  NamedTensors theirs;
  std::set<std::string> known;
  auto type = at::ScalarType::Undefined;
  for (const auto& link : links) {
    known.insert(link.ours.begin(), link.ours.end());
    if (link.ours.empty()) continue;
    const auto parts = gather(link, ours, type, source);
    if (link.theirs.empty())
      check_implied(link, parts, source);
    else
      theirs[link.theirs] = write(link, parts, source);
  }
  for (const auto& link : links)
    if (link.ours.empty()) theirs[link.theirs] = link.value.to(type);
  check_no_others(ours, known, source);
  return theirs;
}

NamedTensors without_prefix(const NamedTensors& tensors, const std::string& prefix) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) {
    if (name.rfind(prefix, 0) != 0) return tensors;
    result[name.substr(prefix.size())] = tensor;
  }
  return result;
}

}  // namespace translution
