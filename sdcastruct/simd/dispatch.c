/* Which table of kernels this machine can run. */
#include <string.h>

#include "kernels.h"

extern const Kernels sdcastruct_kernels_baseline;

#if defined(__x86_64__) && defined(__GNUC__)
extern const Kernels sdcastruct_kernels_avx2;

static const Kernels *avx2_kernels(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &sdcastruct_kernels_avx2;
    return NULL;
}
#else
static const Kernels *avx2_kernels(void) { return NULL; }
#endif

const Kernels *sdcastruct_kernels(const char *name) {
    if (strcmp(name, "avx2") == 0) return avx2_kernels();
    if (strcmp(name, "baseline") == 0) return &sdcastruct_kernels_baseline;
    return NULL;
}
