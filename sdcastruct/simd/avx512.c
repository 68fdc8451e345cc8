/* The kernels for AVX-512, with vectors as long as those of AVX2: twice as many registers and masks, without the lower
   clock of some processors and without vectors that lie in two cache lines. Only GCC can be told to do that here.   */
#include "kernels.h"

#if defined(SDCASTRUCT_AVX512)
#pragma GCC target("avx2,fma,avx512f,avx512dq,avx512vl,prefer-vector-width=256")

#define KERNELS sdcastruct_kernels_avx512
#define KERNELS_NAME "avx512"
#define VECTOR_BYTES 32
#include "kernels_impl.h"
#endif
