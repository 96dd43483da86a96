#pragma once

#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/models/options.h"

namespace translution {

/// Maps names of the authors' released code (github.com/hehefan/Translution) to our options.
///
/// A family is one of their classes:
///   former                        attention with a position embedding added to the input
///   rope_former                   rotary attention
///   q, k, v, qk, qv, kv, qkv      Translution with these roles relative
///   lor_q … lor_qkv               alpha-Translution; the shared and the low-rank part averaged
///   lor_rope                      low-rank relative values, rotary queries and keys
///   rope                          relative values; their code prepares a rotation of queries and
///                                 keys but never applies it, so this computes the same as `v`
TRANSLUTION_API std::vector<std::string> authors_families();

/// The position options of a layer of that family. Throws on an unknown name and suggests the
/// nearest known one.
TRANSLUTION_API Position authors_position(const std::string& family);

/// Sets the family's position options, and what else their code fixes for it: the input position
/// embedding, rotary layers as the rest of a hybrid, and the initialisation.
TRANSLUTION_API void set_authors_family(ModelOptions& model, const std::string& family);

/// "former_tiny" … "lor_rope_large": each family with each of their five sizes.
TRANSLUTION_API std::vector<std::string> authors_model_names();

/// The model of that name. The name may be followed by a patch size, as in "lor_qkv_tiny/56", or,
/// for their language model, by a length: "lor_kv_tiny-256". Without either it is their image model
/// with patches of 16. Other options have the defaults of their constructors: 16 relative channels
/// per head.
TRANSLUTION_API ModelOptions authors_model(const std::string& name);

/// True if the name, without a patch size or length, is one of authors_model_names().
TRANSLUTION_API bool is_authors_model(const std::string& name);

}  // namespace translution
