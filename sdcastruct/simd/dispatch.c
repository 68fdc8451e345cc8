/* Which table of kernels this machine can run. */
#include <string.h>

#include "kernels.h"

extern const Kernels sdcastruct_kernels_baseline;

#if defined(SDCASTRUCT_AVX2)
extern const Kernels sdcastruct_kernels_avx2;

static const Kernels *avx2_kernels(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &sdcastruct_kernels_avx2 : NULL;
}
#else
static const Kernels *avx2_kernels(void) { return NULL; }
#endif

#if defined(SDCASTRUCT_AVX512)
extern const Kernels sdcastruct_kernels_avx512;

static const Kernels *avx512_kernels(void) {
    __builtin_cpu_init();
    return avx2_kernels() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl")
               ? &sdcastruct_kernels_avx512
               : NULL;
}
#else
static const Kernels *avx512_kernels(void) { return NULL; }
#endif

const Kernels *sdcastruct_kernels(const char *name) {
    if (strcmp(name, "avx512") == 0) return avx512_kernels();
    if (strcmp(name, "avx2") == 0) return avx2_kernels();
    if (strcmp(name, "baseline") == 0) return &sdcastruct_kernels_baseline;
    return NULL;
}
