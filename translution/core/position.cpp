#include "translution/core/position.h"

namespace translution {

using namespace detail;

bool Position::uses_offsets() const {
  switch (method) {
    case Method::self_attention_no_pos:
    case Method::self_attention:
    case Method::rotary:
      return false;
    case Method::translution:
      return roles.any();
    case Method::alpha_translution:
      return roles.any() && relative_dim > 0;
    default:
      return true;
  }
}

bool Position::shares_qkv() const {
  return method != Method::translution && method != Method::alpha_translution &&
         method != Method::convolution;
}

bool Position::takes_qkv_bias() const {
  return method != Method::convolution && (method != Method::alpha_translution || shared_qkv);
}

bool Position::rotates() const { return rotary || method == Method::rotary; }

OffsetOptions Position::offsets(const std::vector<int64_t>& grid, bool cls, bool causal) const {
  OffsetOptions options{grid, cls, causal, encoding, sharing, radius};
  if (method == Method::convolution) {
    options.sharing = Sharing::window;
    options.radius = kernel_size / 2;
  }
  return options;
}

void Position::check() const {
  require(relative_dim >= 0, "relative_dim: expected 0 or more channels per head, got ",
          relative_dim);
  require(relative_dim_out >= 0,
          "relative_dim_out: expected 0 (same as relative_dim) or more channels per head, got ",
          relative_dim_out);
  require(radius >= 0, "radius: expected 0 or more, got ", radius);
  require(kernel_size > 0 && kernel_size % 2 == 1,
          "convolution: expected an odd kernel_size of 1 or more, got ", kernel_size);
  require(
      sharing != Sharing::window || method == Method::convolution,
      "sharing: expected none, direction or logarithmic; window is for points and for convolution");
  require(encoding == Encoding::relative || sharing == Sharing::none,
          "sharing: expected none, since encoding absolute has one slot per token pair");
  if (method == Method::alpha_translution)
    require(shared_qkv || relative_dim > 0,
            "alpha_translution: expected relative_dim above 0 or shared_qkv, got neither");
  if (method == Method::alpha_translution)
    require(relative_dim_out == 0 || relative_dim > 0, "relative_dim_out: expected 0, since ",
            "relative_dim is 0 and there are no matrices, got ", relative_dim_out);
  require(method != Method::convolution || encoding == Encoding::relative,
          "convolution: expected encoding relative, got absolute");
  if (rotates()) {
    const bool relative_scores =
        (method == Method::translution && (roles.q || roles.k)) || method == Method::convolution;
    require(!relative_scores, "rotary: ", name_of(kMethods, method), " with roles ", roles.str(),
            " has no shared queries and keys to rotate; expected roles v or none");
    require(method != Method::alpha_translution || shared_qkv,
            "rotary: alpha_translution without shared_qkv has no shared queries and keys to "
            "rotate; set shared_qkv or leave rotary off");
  }
  if (method == Method::gated_position)
    require(encoding == Encoding::relative && sharing == Sharing::none,
            "gated_position: expected encoding relative and sharing none, since its features are "
            "offsets");
}

}  // namespace translution
