/* A lock that is held for microseconds. Unlike the system's it does not look at the clock, and giving it back does not
   wait until all that was written before has reached the cache: others only have to see it in this order. It shares its
   cache line with nothing else, because the line travels to whoever takes the lock.                                   */
#ifndef SDCASTRUCT_LOCK_H
#define SDCASTRUCT_LOCK_H

#define LOCK_LINE 128 /* of the longest there are */

#if defined(_MSC_VER)
#include <intrin.h>
__declspec(dllimport) int __stdcall SwitchToThread(void); /* windows.h would define far and near, too */
typedef volatile long LockWord;
#define LOCK_TAKE(WORD) (*(WORD) == 0 && _InterlockedExchange(WORD, 1) == 0)
#define LOCK_GIVE(WORD) _InterlockedExchange(WORD, 0)
#define LOCK_YIELD() SwitchToThread()
#if defined(_M_ARM64)
#define LOCK_PAUSE() __yield()
#else
#define LOCK_PAUSE() _mm_pause()
#endif
#else
#include <sched.h>
typedef int LockWord;
#define LOCK_TAKE(WORD) \
    (__atomic_load_n(WORD, __ATOMIC_RELAXED) == 0 && __atomic_exchange_n(WORD, 1, __ATOMIC_ACQUIRE) == 0)
#define LOCK_GIVE(WORD) __atomic_store_n(WORD, 0, __ATOMIC_RELEASE)
#define LOCK_YIELD() sched_yield()
#if defined(__x86_64__) || defined(__i386__)
#define LOCK_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define LOCK_PAUSE() __asm__ volatile("yield")
#else
#define LOCK_PAUSE()
#endif
#endif

typedef struct {
    char before[LOCK_LINE];
    LockWord word;
    char after[LOCK_LINE];
} Lock;

/* Take the lock unless somebody has it; return whether it was taken. */
static inline int try_to_acquire(Lock *lock) { return LOCK_TAKE(&lock->word); }

/* Whoever holds it is ready in microseconds, unless it runs Python or the system has stopped it: asking the system for
   another thread to run takes longer than that, and a pause of the processor lets the holder go on undisturbed.      */
static inline void acquire(Lock *lock) {
    for (unsigned tries = 1; !try_to_acquire(lock); tries++)
        if (tries % 1000 == 0)
            LOCK_YIELD();
        else
            LOCK_PAUSE();
}

static inline void release(Lock *lock) { LOCK_GIVE(&lock->word); }

#endif
