#pragma once

#include "trial/trial_plan.hpp"

namespace gatemark::trial {

/// The plan of a trial with `echo`, or all problems at once.
[[nodiscard]] std::variant<TrialPlan, Errors> make_echo_plan(const TrialRequest& request, const LinkPlan& links);

}  // namespace gatemark::trial
