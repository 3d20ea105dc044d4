#include "trial/worker.hpp"

#include "base/pin_to.hpp"
#include "io/dpdk_environment.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <fstream>
#include <string_view>

namespace gatemark::trial {

namespace {

using namespace std::chrono_literals;

/// Whether a thread that never sleeps may have a real-time class. Since Linux 6.12 it gives way to
/// tasks that have been starved for a second, for only as long as they need. Earlier kernels starve
/// the soft interrupts in ksoftirqd that carry frames to and from a veth. It must not be throttled
/// either: a kernel with real-time groups stops it for 50 ms of every second, needed or not, unless
/// kernel.sched_rt_runtime_us is -1.
bool real_time_is_harmless() noexcept {
    utsname system{};
    unsigned major = 0, minor = 0;
    bool known = false;
    if (uname(&system) == 0) {
        const std::string_view release{system.release};
        const char* const end = release.data() + release.size();
        const auto [dot, error] = std::from_chars(release.data(), end, major);
        known = error == std::errc{} && dot != end && std::from_chars(dot + 1, end, minor).ec == std::errc{};
    }
    int runtime = 0;
    std::ifstream{"/proc/sys/kernel/sched_rt_runtime_us"} >> runtime;
    return known && (major > 6 || (major == 6 && minor >= 12)) && runtime == -1;
}

}  // namespace

void prefer_this_thread(Precedence precedence) noexcept {
    const sched_param lowest{.sched_priority = 1};
    if (precedence == Precedence::alone && real_time_is_harmless() && pthread_setschedparam(pthread_self(), SCHED_RR, &lowest) == 0) {
        return;
    }
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -20);
}

Worker::Worker(unsigned cpu, Precedence precedence, const TaskList& idle)
    : cpu_{cpu}, precedence_{precedence}, wanted_{&idle}, thread_{[this] { work(); }} {
    wait();
}

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
    pinned_.store(pin_to(cpu_), std::memory_order_release);
    prefer_this_thread(precedence_);
    const io::RegisteredThread registered;
    const pace::CycleClock clock;
    const TaskList* list = wanted_.load(std::memory_order_acquire);
    running_.store(list, std::memory_order_release);
    pace::Ticks last_round;
    while (!stop_.load(std::memory_order_relaxed)) {
        const TaskList* const next = wanted_.load(std::memory_order_acquire);
        const bool ends = next != list;
        const pace::Ticks round = list->idle ? pace::Ticks{} : clock.now();
        bool busy = false;
        if (!ends || !list->idle) {
            for (loop::Task* const task : list->tasks) {
                busy |= task->poll();
            }
        }
        if (!list->idle) {
            if (busy && round.value - last_round.value > longest_pause_.value) {
                longest_pause_ = {round.value - last_round.value};
            }
            last_round = round;
        }
        if (ends) {
            for (loop::Task* const task : list->tasks) {
                task->finish();
            }
            if (list->idle) {
                longest_pause_ = {};
                last_round = clock.now();
            }
            list = next;
            running_.store(list, std::memory_order_release);
        } else if (list->idle && !busy) {
            std::this_thread::sleep_for(list->pause);
        }
    }
}

}  // namespace gatemark::trial
