#pragma once

#include "trial/report.hpp"

#include <chrono>

namespace gatemark::trial {

/// How a running trial looks out for its client. Waiting is done here, so that a cancel or a client that went away ends it at once.
class Watcher {
public:
    virtual ~Watcher() = default;
    /// Waits at most `time`; returns false once the trial is to end.
    [[nodiscard]] virtual bool wait(std::chrono::nanoseconds time) = 0;
    virtual void report(const Progress& progress) = 0;
};

}  // namespace gatemark::trial
