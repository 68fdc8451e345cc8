/* A lock that is held for microseconds. Unlike the system's it does not look at the clock, and giving it back does not
   wait until all that was written before has reached the cache: others only have to see it in this order.             */
#ifndef SDCASTRUCT_LOCK_H
#define SDCASTRUCT_LOCK_H

#if defined(_MSC_VER)
#include <windows.h>
typedef volatile long Lock;
static __inline int try_lock(Lock *lock) { return *lock == 0 && InterlockedExchange(lock, 1) == 0; }
static __inline void release(Lock *lock) { InterlockedExchange(lock, 0); }
static __inline void let_others_run(void) { SwitchToThread(); }
#else
#include <sched.h>
typedef int Lock;
static inline int try_lock(Lock *lock) {
    return __atomic_load_n(lock, __ATOMIC_RELAXED) == 0 && __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) == 0;
}
static inline void release(Lock *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }
static inline void let_others_run(void) { sched_yield(); }
#endif

#endif
