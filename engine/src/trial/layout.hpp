#pragma once

#include "io/port_queues.hpp"
#include "trial/machine.hpp"
#include "trial/requests.hpp"

#include <array>
#include <string>
#include <variant>
#include <vector>

/// How many queues each port has and which CPU polls what: a plan made before anything is opened, by the same code for `open` and for
/// `layout`.
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
    std::vector<std::string> why;  ///< a sentence for each thing that was chosen
};

/// Workers where no CPU is named: 8 cores are to carry 148.8 million frames/s, the smallest ones at 100 Gbit/s. More queues than that
/// have a price: the order of fewer frames can be told.
constexpr std::size_t automatic_workers_max = 8;

/// The one place that decides on queues and CPUs. What the request names is taken as it is. All problems at once.
[[nodiscard]] std::variant<Layout, Errors> decide_layout(const LayoutRequest& request, const std::array<io::PortOffer, 2>& offers,
                                                         const Machine& machine);

/// Deals the senders and receivers of all queues out to the CPUs. Whatever the direction of the traffic, the busy tasks of any two
/// that share a port differ by one at most; so do the senders of a direction, and its receivers. With as many queues a side as CPUs
/// each has one queue of both ports; with twice as many CPUs each has one queue of one port; with four times as many each has a
/// single task, and more stay without. Without a CPU there is no layout. The neighbour responder of a port goes with the sender of
/// its queue 0, whose transmit queue it shares.
[[nodiscard]] std::vector<WorkerLayout> lay_out(unsigned left_queues, unsigned right_queues, const PortCpus& cpus);

/// Whether a CPU that this process may use is left to the control thread and to everything else.
[[nodiscard]] bool leaves_one(const std::vector<WorkerLayout>& workers, const Machine& machine);

}  // namespace gatemark::trial
