/* The kernels for AVX2 with fused multiply-add, for x86-64 machines from 2013 on. */
#include "kernels.h"

#if defined(SDCASTRUCT_AVX2)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

#define KERNELS sdcastruct_kernels_avx2
#define KERNELS_NAME "avx2"
#define VECTOR_BYTES 32
#include "kernels_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
