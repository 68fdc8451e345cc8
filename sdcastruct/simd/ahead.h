/* Memory that will be needed soon, asked for a share at a time. A processor waits for no more than a dozen cache lines
   at once: whoever asks for many in a row waits as if it had read them. So others ask on the way while they compute. */
#ifndef SDCASTRUCT_AHEAD_H
#define SDCASTRUCT_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#define AHEAD_LINE 64
#define AHEAD_MOST (1 << 19) /* a part of the second cache, from which nothing is to vanish before it is needed */

#if defined(__GNUC__)
#define AHEAD_PREFETCH(ADDRESS) __builtin_prefetch(ADDRESS, 0, 2) /* into the second cache: the first is small */
#else
#define AHEAD_PREFETCH(ADDRESS) ((void)(ADDRESS))
#endif

typedef struct {
    const char *next, *end;
    ptrdiff_t share;
} Ahead;

/* Memory from `address` on, in one share until `ahead_share_out`. */
static inline Ahead ahead_of(const void *address, ptrdiff_t n_bytes) {
    const char *begin = (const char *)address;
    Ahead ahead;
    ahead.next = begin - (uintptr_t)begin % AHEAD_LINE;
    ahead.end = begin + (n_bytes < AHEAD_MOST ? n_bytes : AHEAD_MOST);
    ahead.share = ahead.end - ahead.next;
    return ahead;
}

/* Divide what is left into n >= 1 shares of whole lines. */
static inline void ahead_share_out(Ahead *ahead, ptrdiff_t n) {
    ahead->share = ((ahead->end - ahead->next) / (n * AHEAD_LINE) + 1) * AHEAD_LINE;
}

/* Ask for one share, if anything is left; NULL is nothing. */
static inline void ahead_ask(Ahead *ahead) {
    const char *stop;
    if (ahead == NULL) return;
    stop = ahead->end - ahead->next < ahead->share ? ahead->end : ahead->next + ahead->share;
    for (; ahead->next < stop; ahead->next += AHEAD_LINE) AHEAD_PREFETCH(ahead->next);
}

#endif
