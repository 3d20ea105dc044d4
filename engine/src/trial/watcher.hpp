#pragma once

#include "trial/report.hpp"

#include <chrono>

namespace gatemark::trial {

/// How a running trial watches its client. All waiting is done here, so that `cancel` or the end of
/// the client ends it at once.
class Watcher {
public:
    virtual ~Watcher() = default;
    /// Waits at most `time`; returns false once the trial must end.
    [[nodiscard]] virtual bool wait(std::chrono::nanoseconds time) = 0;
    virtual void report(const Progress& progress) = 0;
};

}  // namespace gatemark::trial
