#pragma once

#include "trial/requests.hpp"

#include <string>
#include <vector>

/// Which processor polls what: a plan made before the trial.
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
    unsigned processor = 0;
    std::vector<TaskPlace> tasks;
};

/// Spreads the senders and receivers of all queues over the processors: with one all tasks share it; with one queue a port and two
/// processors each port has its own, with four every task has; without a processor there is no layout. The neighbour responder of a port
/// goes with the sender of its queue 0, whose transmit queue it shares.
[[nodiscard]] std::vector<WorkerLayout> lay_out(unsigned left_queues, unsigned right_queues, const std::vector<unsigned>& processors);

struct Machine {
    std::vector<unsigned> allowed;    ///< processors this process may use
    std::vector<unsigned> isolated;   ///< processors kept free of other work by the kernel (isolcpus)
    std::vector<unsigned> near_port;  ///< processors of the ports' NUMA node; empty if unknown
};

/// Isolated processors near the port first, else all near it but the lowest, which is left to the control thread and the rest of the
/// system; at most `tasks_max`. A machine with a single processor shares it.
[[nodiscard]] std::vector<unsigned> choose_processors(const Machine& machine, std::size_t tasks_max);

/// Reads the machine as it is. `numa_node` is -1 if unknown.
[[nodiscard]] Machine read_machine(int numa_node);

/// Reads a kernel list such as "0-3,8". Anything else gives what could be read up to there.
[[nodiscard]] std::vector<unsigned> parse_processor_list(const std::string& text);

}  // namespace gatemark::trial
