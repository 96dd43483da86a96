#pragma once

// Attribute for functions with plain loops over pixels: compiles them twice and selects one by the
// processor at run time. AVX2 without fused multiply-add, so both give the same bits. Off under the
// thread sanitizer: the ifunc resolver runs before it starts and crashes.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__)
#define TRANSLUTION_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define TRANSLUTION_WIDE
#endif
