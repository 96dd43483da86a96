#pragma once

#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/models/options.h"

namespace translution {

/// Names of the authors' released code (github.com/hehefan/Translution), as values of ours.
///
/// A family is what sets one of their classes apart from the others:
///   former                        attention with a vector per place added to the input
///   rope_former                   rotary attention
///   q, k, v, qk, qv, kv, qkv      Translution with these roles relative
///   lor_q … lor_qkv               its low-rank form (alpha-Translution), its parts averaged
///   lor_rope                      low-rank relative values, rotary queries and keys
///   rope                          relative values; their code prepares a rotation of queries and
///                                 keys and never applies it, so this computes what `v` does
TRANSLUTION_API std::vector<std::string> authors_families();

/// The position of a layer of that family. Unknown: one line with the nearest known name.
TRANSLUTION_API Position authors_position(const std::string& family);

/// Gives the model the family's position, and what else their code has with it: whether places are
/// added to the input, rotary layers as the rest of a hybrid, and how weights start.
TRANSLUTION_API void set_authors_family(ModelOptions& model, const std::string& family);

/// "former_tiny" … "lor_rope_large": each family with each of their five sizes.
TRANSLUTION_API std::vector<std::string> authors_model_names();

/// The model of such a name. Behind it may stand a patch size, as in "lor_qkv_tiny/56", or, for
/// their language model, a length: "lor_kv_tiny-256". Without either it is their image model with
/// patches of 16. The options they leave at a default have that: 16 relative channels per head.
TRANSLUTION_API ModelOptions authors_model(const std::string& name);

/// Does the name begin as one of theirs?
TRANSLUTION_API bool is_authors_model(const std::string& name);

}  // namespace translution
