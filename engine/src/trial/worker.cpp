#include "trial/worker.hpp"

#include "io/dpdk_environment.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

namespace gatemark::trial {

namespace {

using namespace std::chrono_literals;
constexpr auto idle_pause = 100us;

bool pin_to(unsigned processor) noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

/// Before other ordinary work on its processor, if we may. Not a real-time class: a polling thread of such a class is throttled for 50 ms a
/// second.
void prefer_this_thread() noexcept { (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -20); }

}  // namespace

Worker::Worker(unsigned processor, const TaskList& idle) : processor_{processor}, wanted_{&idle}, thread_{[this] { work(); }} { wait(); }

Worker::~Worker() {
    stop_.store(true, std::memory_order_release);
    thread_.join();
}

void Worker::wait() const noexcept {
    while (running_.load(std::memory_order_acquire) != wanted_.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(10us);
    }
}

void Worker::work() noexcept {
    pinned_.store(pin_to(processor_), std::memory_order_release);
    prefer_this_thread();
    const io::RegisteredThread registered;
    const TaskList* list = nullptr;
    while (!stop_.load(std::memory_order_relaxed)) {
        const TaskList* const wanted = wanted_.load(std::memory_order_acquire);
        if (wanted != list) {
            list = wanted;
            running_.store(list, std::memory_order_release);
        }
        bool busy = false;
        for (loop::Task* const task : list->tasks) {
            busy |= task->poll();
        }
        if (list->idle && !busy) {
            std::this_thread::sleep_for(idle_pause);
        }
    }
}

}  // namespace gatemark::trial
