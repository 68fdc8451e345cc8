/* Memory that will be needed soon, asked for a share at a time. A processor waits for no more than a dozen cache lines
   at once: whoever asks for many in a row waits as if it had read them. So others ask on the way while they compute. */
#ifndef SDCASTRUCT_AHEAD_H
#define SDCASTRUCT_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#define AHEAD_LINE 64
#define AHEAD_MOST (1 << 19) /* a part of the second cache, from which nothing is to vanish before it is needed */

#if defined(AHEAD_PREFETCH) /* by a test */
#elif defined(__GNUC__)
#define AHEAD_PREFETCH(ADDRESS) __builtin_prefetch(ADDRESS, 0, 2) /* into the second cache: the first is small */
#else
#define AHEAD_PREFETCH(ADDRESS) ((void)(ADDRESS))
#endif

typedef struct {
    const char *next, *end;
} AheadPart;

typedef struct {
    AheadPart part, then; /* `then` comes when nothing is left of `part` */
    ptrdiff_t n_lines;    /* of a share */
} Ahead;

static inline AheadPart ahead_part(const void *address, ptrdiff_t n_bytes) {
    const char *begin = (const char *)address;
    AheadPart part;
    part.next = begin - (uintptr_t)begin % AHEAD_LINE;
    part.end = begin + n_bytes;
    return part;
}

/* Divide what is left into n >= 1 shares. */
static inline void ahead_share_out(Ahead *ahead, ptrdiff_t n) {
    const ptrdiff_t n_bytes = (ahead->part.end - ahead->part.next) + (ahead->then.end - ahead->then.next);
    ahead->n_lines = n_bytes / (n * AHEAD_LINE) + 2;
}

/* Memory from `address` on, then from `second` on, in one share until `ahead_share_out`. */
static inline Ahead ahead_of(const void *address, ptrdiff_t n_bytes, const void *second, ptrdiff_t n_bytes_of_second) {
    Ahead ahead;
    if (n_bytes > AHEAD_MOST) n_bytes = AHEAD_MOST;
    if (n_bytes_of_second > AHEAD_MOST - n_bytes) n_bytes_of_second = AHEAD_MOST - n_bytes;
    ahead.part = ahead_part(address, n_bytes);
    ahead.then = ahead_part(second, n_bytes_of_second);
    ahead_share_out(&ahead, 1);
    return ahead;
}

/* Ask for one share, if anything is left; NULL is nothing. */
static inline void ahead_ask(Ahead *ahead) {
    ptrdiff_t n;
    if (ahead == NULL) return;
    for (n = ahead->n_lines; n > 0; n--, ahead->part.next += AHEAD_LINE) {
        if (ahead->part.next >= ahead->part.end) {
            ahead->part = ahead->then;
            ahead->then.next = ahead->then.end;
            if (ahead->part.next >= ahead->part.end) return;
        }
        AHEAD_PREFETCH(ahead->part.next);
    }
}

#endif
