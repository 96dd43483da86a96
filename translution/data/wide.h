#pragma once

// Before a function with plain loops over pixels: it is compiled twice, and the processor decides
// at run time which one is called. Without fused multiply-add, so that both give the same bits.
// Not under the thread sanitizer: the choice is made before that has started, and it crashes.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__)
#define TRANSLUTION_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define TRANSLUTION_WIDE
#endif
