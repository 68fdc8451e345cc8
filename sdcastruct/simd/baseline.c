/* The kernels for the instruction set that the compiler targets by default (SSE2 on x86-64, NEON on AArch64). */
#define KERNELS sdcastruct_kernels_baseline
#define KERNELS_NAME "baseline"
#define VECTOR_BYTES 16
#include "kernels_impl.h"
