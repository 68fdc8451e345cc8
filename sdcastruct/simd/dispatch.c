/* Which table of kernels this machine can run. */
#include <string.h>

#include "kernels.h"

extern const Kernels sdcastruct_kernels_baseline;

#if defined(__x86_64__) && defined(__GNUC__)
extern const Kernels sdcastruct_kernels_avx2, sdcastruct_kernels_avx512;

static int has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static int has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static const Kernels *vector_kernels(const char *name) {
    __builtin_cpu_init();
    if (strcmp(name, "avx2") == 0 && has_avx2()) return &sdcastruct_kernels_avx2;
    if (strcmp(name, "avx512") == 0 && has_avx512()) return &sdcastruct_kernels_avx512;
    return NULL;
}
#else
static const Kernels *vector_kernels(const char *name) { return NULL; }
#endif

const Kernels *sdcastruct_kernels(const char *name) {
    return strcmp(name, "baseline") == 0 ? &sdcastruct_kernels_baseline : vector_kernels(name);
}
