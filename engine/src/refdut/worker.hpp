#pragma once

#include "io/dpdk_environment.hpp"
#include "io/unmap_guard.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <optional>
#include <thread>

namespace gatemark::refdut {

/// The thread that polls the gateway without pause. It stays in the ordinary scheduling class,
/// because real-time loops here and in a Tester would leave nothing to other work on a machine with
/// two cores. Its nice value is lowered if that is permitted; the time that the scheduler takes
/// from it shows as the longest gap between two polls.
template <class Gateway, class Command>
class Worker {
public:
    Worker(Gateway& gateway, std::optional<unsigned> cpu) : gateway_{gateway}, cpu_{cpu}, thread_{[this] { work(); }} {
        while (!started_.load(std::memory_order_acquire)) {
            pause();
        }
    }
    ~Worker() {
        stop_.store(true, std::memory_order_release);
        thread_.join();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// Has the command executed between two polls, and waits for that. One caller at a time.
    void run(Command& command) {
        command_.store(&command, std::memory_order_release);
        while (command_.load(std::memory_order_acquire) != nullptr) {
            pause();
        }
    }
    /// False if the thread could not be pinned to its CPU.
    [[nodiscard]] bool pinned() const noexcept { return pinned_; }

private:
    static constexpr int nice_value = -10;

    static void pause() { std::this_thread::sleep_for(std::chrono::microseconds{20}); }

    void work() {
        if (cpu_) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(*cpu_, &set);
            pinned_ = pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
        }
        (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), nice_value);
        const io::RegisteredThread registered;
        io::UnmapGuard guard;
        started_.store(true, std::memory_order_release);
        while (!stop_.load(std::memory_order_relaxed)) {
            gateway_.poll();
            guard.came_round();
            if (Command* const command = command_.load(std::memory_order_acquire)) [[unlikely]] {
                try {
                    gateway_.execute(*command);
                } catch (const std::bad_alloc&) {
                    command->out_of_memory = true;
                }
                command_.store(nullptr, std::memory_order_release);
            }
        }
    }

    Gateway& gateway_;
    std::optional<unsigned> cpu_;
    bool pinned_ = true;                ///< written before `started_`
    std::atomic<bool> started_{false};  ///< release in work pairs with acquire in the constructor
    std::atomic<bool> stop_{false};
    std::atomic<Command*> command_{nullptr};  ///< release in run pairs with acquire in work, and back
    std::thread thread_;
};

}  // namespace gatemark::refdut
