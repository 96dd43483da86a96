#pragma once

// Before a function with plain loops over pixels: it is compiled twice, and the processor decides
// at run time which one is called. Without fused multiply-add, so that both give the same bits.
#if defined(__x86_64__) && defined(__GNUC__)
#define TRANSLUTION_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define TRANSLUTION_WIDE
#endif
