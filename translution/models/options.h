#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/position.h"
#include "translution/nn/options.h"

namespace translution {

/// Depth and widths of a backbone.
struct Architecture {
  std::string name;
  int64_t depth, dim, heads, mlp_dim, dim_head;
};

enum class Family { vit, gpt, cloud };

inline constexpr Named<Family> kFamilies[] = {
    {Family::vit, "vit", "images to classes"},
    {Family::gpt, "gpt", "text to the next token"},
    {Family::cloud, "cloud", "points to classes, or to a number"},
};

/// Images and text have the paper's A, B and C, two larger ones, and a small one for tests: "a",
/// "b", "c", "base", "large", "tiny". Points have "a", "b" and "tiny" of their own.
TRANSLUTION_API const std::vector<Architecture>& architectures(Family family = Family::vit);

/// Finds an architecture by its name, or reads one written as depth, dim, heads and mlp_dim:
/// "6x192x3x768". A fifth number is dim_head; without it, dim_head is dim / heads. Returns nullopt
/// for other names.
TRANSLUTION_API std::optional<Architecture> find_architecture(const std::string& name,
                                                              Family family = Family::vit);

/// The architecture of these sizes. Its name is that of a known architecture, or the sizes written
/// out.
TRANSLUTION_API Architecture architecture_of(int64_t depth, int64_t dim, int64_t heads,
                                             int64_t mlp_dim, int64_t dim_head,
                                             Family family = Family::vit);

/// "vit-a", "vit-b"… "gpt-large", "cloud-a"…: every family with every architecture, then the
/// authors' names.
TRANSLUTION_API std::vector<std::string> model_names();

enum class Pooling { cls, mean };

inline constexpr Named<Pooling> kPoolings[] = {
    {Pooling::cls, "cls", "class token"},
    {Pooling::mean, "mean", "mean of the patches or points, without a class token"},
};

/// The coordinates that an input embedding of points reads.
enum class Coordinates { given, centred };

inline constexpr Named<Coordinates> kCoordinates[] = {
    {Coordinates::given, "given", "as they are in the data"},
    {Coordinates::centred, "centred", "from the mean of the cloud"},
};

/// All options of a model: they determine its parameters and what it computes.
struct TRANSLUTION_API ModelOptions {
  Family family = Family::vit;
  Architecture architecture{"a", 6, 192, 3, 768, 64};

  // ViT
  std::vector<int64_t> image_size{224, 224};
  int64_t patch_size = 16;

  // ViT and cloud
  int64_t channels = 3;    ///< of a pixel, or features of a point
  int64_t classes = 1000;  ///< cloud, 0: the model predicts a number
  Pooling pooling = Pooling::cls;

  // Cloud. The lattice has position.radius points to each side; position.sharing is direction or
  // window.
  int64_t axes = 3;               ///< numbers of a position
  std::optional<double> spacing;  ///< of the lattice, in the unit of the positions
  int64_t neighbours = 0;         ///< nearest points that a point attends to; 0: all
  double cutoff = 0;              ///< the farthest point that a point attends to; 0: any
  bool distances = false;         ///< an offset is the distance of a pair
  bool learn_spacing = false;     ///< one parameter for all layers
  Coordinates coordinates = Coordinates::given;  ///< that the input embedding reads
  int64_t points = 1024;  ///< of a cloud, for costs and memory only: clouds have any number
  /// A predicted number is the output times target_scale plus target_mean.
  double target_mean = 0, target_scale = 1;

  // GPT
  int64_t length = 160;  ///< maximum number of tokens
  int64_t vocabulary = 50257;

  // Position
  Position position;
  /// A vector per position added to the input, of points by an MLP of their coordinates; unset: set
  /// by the method.
  std::optional<bool> input_embedding;
  std::optional<int64_t> hybrid_layers;         ///< number of leading layers that use the method
  Method rest = Method::self_attention_no_pos;  ///< of the other layers: this or rotary

  // Layout: as in the paper, or as in other models of the kind (GPT-2, timm's ViT).
  bool extra_norms = true;  ///< ViT: around the patch embedding; GPT: a second one before the head
  bool qkv_bias = false;    ///< in every layer
  Gelu gelu = Gelu::exact;
  double norm_eps = 1e-5;

  double dropout = 0.0;
  Init init = Init::scaled;
  Precision precision = Precision::float32;  ///< of products; weights are always float32
  /// Bytes that each layer may save for backward; unset: runtime().workspace(). Not stored with a
  /// model.
  std::optional<int64_t> workspace;
  /// The rows of tables that this process has, in offset-parallel training of images and text. Not
  /// stored with a model.
  SlotShare share;

  /// The options of a family before any are set.
  static ModelOptions of_family(Family family);
  /// Reads a name such as "vit-a/12", "gpt-a-160", "cloud-a", "gpt-6x192x3x768-160" into family,
  /// architecture and patch size or length. The authors' names (models/authors.h) set further
  /// options. Throws on an unknown name and suggests the nearest known one.
  static ModelOptions named(const std::string& name);
  /// "vit-a/12", "gpt-a-160", "cloud-a".
  std::string name() const;

  /// Sides of the token grid: patches of the image, or the length. Empty for points.
  std::vector<int64_t> grid() const;
  bool has_cls() const { return family != Family::gpt && pooling == Pooling::cls; }
  bool is_causal() const { return family == Family::gpt; }
  bool predicts_number() const { return family == Family::cloud && classes == 0; }
  int64_t tokens() const;
  bool embeds_input() const { return input_embedding.value_or(position.embeds_input()); }
  /// The attention options of layer `layer`.
  AttentionOptions attention(int64_t layer) const;
  /// The options of an Attention on a grid that has the parameters of layer `layer`: those of
  /// attention(), and for points a grid that stands for the lattice.
  AttentionOptions table_options(int64_t layer) const;
  /// Points: the lattice of all layers and the pairs on it.
  PointOptions lattice() const;
  BlockStyle block_style() const { return {dropout, gelu, norm_eps, precision, init}; }
  /// Throws on invalid options.
  void check() const;
};

}  // namespace translution
