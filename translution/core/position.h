#pragma once

#include <cstdint>
#include <string>

#include "translution/core/export.h"
#include "translution/core/names.h"
#include "translution/core/offsets.h"
#include "translution/core/roles.h"

namespace translution {

/// How position enters attention. Convolution is included as a limiting case.
enum class Method {
  self_attention_no_pos,
  self_attention,
  relative_key,
  relative_value,
  relative_bias,
  gated_position,
  rotary,
  alpha_translution,
  translution,
  convolution,
};

inline constexpr Named<Method> kMethods[] = {
    {Method::self_attention_no_pos, "self_attention_no_pos", "position enters nowhere"},
    {Method::self_attention, "self_attention", "a vector per position, added to the input once"},
    {Method::relative_key, "relative_key", "a vector per offset, added to the keys"},
    {Method::relative_value, "relative_value", "a vector per offset, added to the values"},
    {Method::relative_bias, "relative_bias", "a number per offset and head, added to the score"},
    {Method::gated_position, "gated_position", "a positional attention, mixed in by a gate"},
    {Method::rotary, "rotary", "a rotation of queries and keys"},
    {Method::alpha_translution, "alpha_translution", "a small matrix per offset for q, k and v"},
    {Method::translution, "translution", "a full matrix per offset for q, k and v"},
    {Method::convolution, "convolution", "a matrix per offset in a window, every score 1"},
};

inline constexpr Named<Encoding> kEncodings[] = {
    {Encoding::relative, "relative", "one weight row per offset"},
    {Encoding::absolute, "absolute", "one weight row per token pair"},
};

inline constexpr Named<Sharing> kSharings[] = {
    {Sharing::none, "none", "one weight row per offset"},
    {Sharing::direction, "direction", "beyond the radius, one weight row per direction"},
    {Sharing::logarithmic, "logarithmic", "beyond the radius, buckets that double in width"},
    {Sharing::window, "window", "points: beyond the radius, no attention"},
};

/// How alpha-Translution combines its shared and its relative part: as a sum, as in the paper, or
/// as a mean, as in the authors' released code.
enum class Mixing { sum, mean };

inline constexpr Named<Mixing> kMixings[] = {
    {Mixing::sum, "sum", "add the shared and the relative part (the paper)"},
    {Mixing::mean, "mean", "average them (the authors' released code)"},
};

/// The type in which rotary angles, their sines and cosines are computed.
enum class Angles { in_double, in_float };

inline constexpr Named<Angles> kAngles[] = {
    {Angles::in_double, "double", "exact for weights of any type"},
    {Angles::in_float, "float", "rounded as in the authors' released code"},
};

/// A method with its options. Options that the method does not use are ignored.
struct TRANSLUTION_API Position {
  Method method = Method::translution;
  Roles roles;                             ///< translution, alpha_translution
  Encoding encoding = Encoding::relative;  ///< every method with offsets
  Sharing sharing = Sharing::none;         ///< every method with offsets
  int64_t radius = 0;                      ///< sharing radius
  int64_t relative_dim = 8;           ///< alpha_translution: channels per head; 0: no relative part
  int64_t relative_dim_out = 0;       ///< output channels of its matrices; 0: relative_dim
  bool shared_qkv = true;             ///< alpha_translution: add shared W^q, W^k, W^v
  Mixing mixing = Mixing::sum;        ///< alpha_translution
  bool rotary = false;                ///< rotate queries and keys that are not relative
  Angles angles = Angles::in_double;  ///< type of the rotary angles
  int64_t kernel_size = 3;            ///< convolution: side of the window, odd

  /// Whether the method uses an offset table.
  bool uses_offsets() const;
  /// Whether the layer has one W^q, W^k, W^v for all pairs, as plain attention does.
  bool shares_qkv() const;
  /// Whether the layer has queries, keys and values of full width, so that they can have a bias.
  bool takes_qkv_bias() const;
  /// Output channels per head of alpha_translution's matrices.
  int64_t relative_out() const { return relative_dim_out > 0 ? relative_dim_out : relative_dim; }
  /// Whether shared queries and keys are rotated.
  bool rotates() const;
  /// Whether the method adds a position embedding to its input by default.
  bool embeds_input() const { return method == Method::self_attention; }
  /// The options of this method's offset table for the given tokens.
  OffsetOptions offsets(const std::vector<int64_t>& grid, bool cls, bool causal) const;
  /// Throws std::invalid_argument if the options contradict each other.
  void check() const;
};

}  // namespace translution
