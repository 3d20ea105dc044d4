#pragma once

#include "io/port_queues.hpp"
#include "trial/machine.hpp"
#include "trial/requests.hpp"

#include <array>
#include <string>
#include <variant>
#include <vector>

/// How many queues each port has and which CPU polls what. The plan is made before anything is
/// opened, by the same code for `open` and `layout`.
namespace gatemark::trial {

enum class TaskKind : std::uint8_t { send, receive };

struct TaskPlace {
    Side side = Side::left;  ///< whose port
    TaskKind kind = TaskKind::send;
    unsigned queue = 0;

    /// "send forward 0": what the task does, and the queue.
    [[nodiscard]] std::string text() const;
    friend bool operator==(const TaskPlace&, const TaskPlace&) = default;
};

struct WorkerLayout {
    unsigned cpu = 0;
    std::vector<TaskPlace> tasks;
};

struct Layout {
    std::array<unsigned, 2> queues{1, 1};  ///< by Side
    std::vector<WorkerLayout> workers;
    std::vector<std::string> why;  ///< a sentence for each decision
};

/// The number of workers if no CPU is named: 8 cores should carry 148.8 million frames/s, the rate
/// of the smallest frames at 100 Gbit/s. More queues have a price: order is known within a queue
/// only.
constexpr std::size_t automatic_workers_max = 8;

/// The only place that decides on queues and CPUs. What the request names is used as it is. Returns
/// all problems at once.
[[nodiscard]] std::variant<Layout, Errors> decide_layout(const LayoutRequest& request, const std::array<io::PortOffer, 2>& offers,
                                                         const Machine& machine);

/// Deals the senders and receivers of all queues out to the CPUs. Whatever the direction of the
/// traffic, the numbers of busy tasks of any two CPUs that share a port differ by at most one; so
/// do those of the senders of a direction, and of its receivers. With one CPU per queue of a side,
/// each CPU has one queue of both ports; with two, each has one queue of one port; with four, each
/// has a single task, and further CPUs have none. Without a CPU there is no layout. The neighbour
/// responder of a port goes with the sender of its queue 0, whose transmit queue it shares.
[[nodiscard]] std::vector<WorkerLayout> lay_out(unsigned left_queues, unsigned right_queues, const PortCpus& cpus);

/// Whether a CPU that this process may use is left for the control thread and everything else.
[[nodiscard]] bool leaves_one(const std::vector<WorkerLayout>& workers, const Machine& machine);

}  // namespace gatemark::trial
