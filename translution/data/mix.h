#pragma once

#include "translution/core/random.h"
#include "translution/data/dataset.h"

namespace translution {

struct MixOptions {
  double mixup_alpha = 0.8, cutmix_alpha = 1.0;  ///< a share is drawn from Beta(alpha, alpha)
};

/// A number from the beta distribution: from 0 to 1, with mean a / (a + b).
double draw_beta(double a, double b, Random& random);

/// Mixes image i of the batch with image B-1-i, by mixup (the sum of both, with the weights lambda
/// and 1 - lambda) or cutmix (a rectangle, cut off at the border, of the other image), one of
/// them for the whole batch with equal chance. The target becomes float [B,classes]: the share of
/// each image's own class and that of the other; for cutmix these are the pixels that it really
/// has. input float [B,channels,rows,cols] is changed in place; target int64 [B] with values below
/// `classes`.
void mix_batch(Batch& batch, int64_t classes, Random random, const MixOptions& options = {});

}  // namespace translution
