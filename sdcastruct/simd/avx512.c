/* The kernels for AVX-512, with vectors as long as those of AVX2: twice as many registers and masks, without the lower
   clock of some processors and without vectors that lie in two cache lines.                                          */
#if defined(__x86_64__) && defined(__GNUC__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,avx512f,avx512dq,avx512vl,prefer-vector-width=256")
#endif

#define KERNELS sdcastruct_kernels_avx512
#define KERNELS_NAME "avx512"
#define VECTOR_BYTES 32
#include "kernels_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
