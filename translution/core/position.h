#pragma once

#include <cstdint>
#include <string>

#include "translution/core/export.h"
#include "translution/core/names.h"
#include "translution/core/offsets.h"
#include "translution/core/roles.h"

namespace translution {

/// Where position enters. Every method is attention (or its limit, convolution) with another
/// answer to that question.
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
    {Method::self_attention, "self_attention", "a vector per place, added to the input once"},
    {Method::relative_key, "relative_key", "a vector per offset, added to the keys"},
    {Method::relative_value, "relative_value", "a vector per offset, added to the values"},
    {Method::relative_bias, "relative_bias", "a number per offset and head, added to the score"},
    {Method::gated_position, "gated_position", "a positional attention, mixed in by a gate"},
    {Method::rotary, "rotary", "a rotation of queries and keys"},
    {Method::alpha_translution, "alpha_translution", "a small matrix per offset for q, k and v"},
    {Method::translution, "translution", "a full matrix per offset for q, k and v"},
    {Method::convolution, "convolution", "a matrix per offset in a window, every score one"},
};

inline constexpr Named<Encoding> kEncodings[] = {
    {Encoding::relative, "relative", "one weight row per offset"},
    {Encoding::absolute, "absolute", "one weight row per token pair"},
};

inline constexpr Named<Sharing> kSharings[] = {
    {Sharing::none, "none", "every offset has a row of its own"},
    {Sharing::direction, "direction", "beyond the radius one row per direction"},
    {Sharing::logarithmic, "logarithmic", "beyond the radius buckets that double in width"},
};

/// How alpha-Translution joins its shared and its relative part: added, as in the paper, or
/// averaged, as in the authors' released code.
enum class Mixing { sum, mean };

inline constexpr Named<Mixing> kMixings[] = {
    {Mixing::sum, "sum", "add the shared and the relative part (the paper)"},
    {Mixing::mean, "mean", "average them (the authors' released code)"},
};

/// The type in which rotary angles, their sines and cosines are taken.
enum class Angles { in_double, in_float };

inline constexpr Named<Angles> kAngles[] = {
    {Angles::in_double, "double", "exact for weights of any type"},
    {Angles::in_float, "float", "rounded as in the authors' released code"},
};

/// A method with its orthogonal choices. Fields that the method does not use are ignored.
struct TRANSLUTION_API Position {
  Method method = Method::translution;
  Roles roles;                             ///< translution, alpha_translution
  Encoding encoding = Encoding::relative;  ///< every method with offsets
  Sharing sharing = Sharing::none;         ///< every method with offsets
  int64_t radius = 0;                      ///< of the sharing
  int64_t relative_dim = 8;                ///< alpha_translution: channels per head; 0 for none
  int64_t relative_dim_out = 0;            ///< the same behind the matrices; 0: as relative_dim
  bool shared_qkv = true;                  ///< alpha_translution: W^q, W^k, W^v beside it
  Mixing mixing = Mixing::sum;             ///< alpha_translution
  bool rotary = false;                     ///< rotate queries and keys that are not relative
  Angles angles = Angles::in_double;       ///< of every rotation
  int64_t kernel_size = 3;                 ///< convolution: odd side of the window

  /// Does the method read an offset table?
  bool uses_offsets() const;
  /// Is the layer plain attention, with one W^q, W^k, W^v, whatever position adds to it?
  bool shares_qkv() const;
  /// Channels per head that alpha_translution's matrices give.
  int64_t relative_out() const { return relative_dim_out > 0 ? relative_dim_out : relative_dim; }
  /// Are shared queries and keys rotated?
  bool rotates() const;
  /// Is a position embedding part of the method's input unless the caller says otherwise?
  bool embeds_input() const { return method == Method::self_attention; }
  /// The table this method reads on the given tokens.
  OffsetOptions offsets(const std::vector<int64_t>& grid, bool cls, bool causal) const;
  /// Refuses combinations that make no sense.
  void check() const;
};

}  // namespace translution
