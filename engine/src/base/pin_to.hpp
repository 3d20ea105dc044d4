#pragma once

#include <pthread.h>
#include <sched.h>

namespace gatemark {

/// Keeps the calling thread on one CPU; false if it may not run there.
inline bool pin_to(unsigned cpu) noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

}  // namespace gatemark
