/* Memory that will be needed soon, asked for a share at a time. A processor waits for no more than a dozen cache lines
   at once: whoever asks for many in a row waits as if it had read them. So others ask on the way, while they compute. */
#ifndef SDCASTRUCT_AHEAD_H
#define SDCASTRUCT_AHEAD_H

#include <stddef.h>

#define AHEAD_LINE 64

#if defined(__GNUC__)
#define AHEAD_ASK(ADDRESS) __builtin_prefetch(ADDRESS, 0, 2) /* into the second cache: the first is small */
#else
#define AHEAD_ASK(ADDRESS) ((void)(ADDRESS))
#endif

typedef struct {
    const char *next, *end;
    ptrdiff_t share;
} Ahead;

/* From `address` on, in one share until `share_out`. */
static inline Ahead ahead_of(const void *address, ptrdiff_t n_bytes) {
    return (Ahead){(const char *)address, (const char *)address + n_bytes, n_bytes};
}

/* Divide what is left into n shares of whole lines. */
static inline void share_out(Ahead *ahead, ptrdiff_t n) {
    ahead->share = ((ahead->end - ahead->next) / (n * AHEAD_LINE) + 1) * AHEAD_LINE;
}

/* Ask for one share, if there is any. */
static inline void ask(Ahead *ahead) {
    if (ahead == NULL) return;
    const char *stop = ahead->end - ahead->next < ahead->share ? ahead->end : ahead->next + ahead->share;
    for (; ahead->next < stop; ahead->next += AHEAD_LINE) AHEAD_ASK(ahead->next);
}

#endif
