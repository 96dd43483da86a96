#pragma once

#include "translution/core/random.h"
#include "translution/data/dataset.h"

namespace translution {

struct MixOptions {
  double mixup_alpha = 0.8, cutmix_alpha = 1.0;  ///< lambda is drawn from Beta(alpha, alpha)
};

/// Draws from the beta distribution: 0 to 1, mean a / (a + b).
double draw_beta(double a, double b, Random& random);

/// Mixes image i of the batch with image B-1-i. The whole batch uses mixup (lambda * own +
/// (1 - lambda) * other) or cutmix (a rectangle of the other image, clipped at the border), each
/// with probability 1/2. The target becomes float [B,classes] with weight lambda for the image's
/// own class and 1 - lambda for the other's; for cutmix, lambda is the actual share of own pixels.
/// Changes input float [B,channels,rows,cols] in place; target int64 [B] has values below
/// `classes`.
void mix_batch(Batch& batch, int64_t classes, Random random, const MixOptions& options = {});

}  // namespace translution
