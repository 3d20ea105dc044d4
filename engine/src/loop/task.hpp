#pragma once

namespace gatemark::loop {

/// One sender, receiver or neighbour responder on one queue of one port. A worker polls its tasks
/// in turn; one virtual call per burst costs nothing, and inside `poll` everything is composed at
/// compile time.
struct Task {
    virtual ~Task() = default;
    /// Does a bounded amount of work (a burst or two); returns whether there was any.
    virtual bool poll() noexcept = 0;
    /// Does what the last poll has left to the next one. The worker is about to leave its tasks.
    virtual void finish() noexcept {}
};

}  // namespace gatemark::loop
