#include "trial/echo_tasks.hpp"

#include <algorithm>

namespace gatemark::trial {

EchoTasks::EchoTasks(TesterParts& parts, const TrialRequest& request, const TrialPlan& plan)
    : parts_{parts}, request_{request}, plan_{plan}, steady_{echo().numbers().shape().clients} {
    const std::size_t right_queues = parts.side(Side::right).queues.size(), left_queues = parts.side(Side::left).queues.size();
    parts.echo.answered.reset(plan.directions.front().frame_count, right_queues == 1 ? record::Receivers::one : record::Receivers::many);
    if (echo().pool() != nullptr) {
        keeper_.emplace(parts.echo.table, echo().numbers());
    }
    for (std::size_t queue = 0; queue < right_queues; ++queue) {
        answers_.push_back(std::make_unique<loop::AnswerQueue>());
    }
    if (plan.echo->pace_without_reply) {
        const frame::EchoShape& shape = echo().numbers().shape();
        for (std::size_t queue = 0; queue < left_queues; ++queue) {
            boards_.push_back(std::make_unique<loop::ReplyBoard>(
                static_cast<std::size_t>((shape.clients + left_queues - 1) / left_queues * shape.window)));
        }
    }
}

void EchoTasks::set_templates() {
    for (QueuePair& queue : parts_.side(Side::left).queues) {
        queue.pools[slot_foreground].set_template(echo().sent_request().frame_template.frame);
    }
    for (QueuePair& queue : parts_.side(Side::right).queues) {
        queue.pools[slot_foreground].set_template(echo().sent_reply().frame_template.frame);
    }
}

std::vector<std::unique_ptr<loop::ReceivingTask>> EchoTasks::make_receivers(Side side, pace::Ticks earliest) {
    const bool is_client = side == Side::left;
    const std::size_t senders = parts_.side(Side::left).queues.size();
    loop::EchoReceiverPlan plan{.trial_id = plan_.trial_id,
                                .earliest = earliest,
                                .kept_frames_max = request_.kept_frames_max,
                                .sources = parts_.known_sources(side),
                                .echo = &echo(),
                                .kind = is_client ? frame::EchoKind::reply : frame::EchoKind::request,
                                .frame_count = plan_.directions.front().frame_count,
                                .arrivals = &parts_.memory(is_client ? Direction::reverse : Direction::forward).arrivals};
    if (is_client) {
        plan.delays.timeout = parts_.scale.ticks(plan_.echo->timeout);
    } else if (boards_.empty()) {
        plan.senders = Divider{senders};
    }
    std::vector<loop::ReplyBoard*> boards;
    for (const auto& board : boards_) {
        boards.push_back(board.get());
    }
    std::vector<std::unique_ptr<loop::ReceivingTask>> receivers;
    auto& queues = parts_.side(side).queues;
    for (std::size_t i = 0; i < queues.size(); ++i) {
        QueuePair& queue = queues[i];
        if (is_client) {
            auto receiver = std::make_unique<Replies>(plan, *queue.receive, *queue.mailbox, loop::ReplyHandler{echo(), boards, steady_});
            replies_.push_back(receiver.get());
            receivers.push_back(std::move(receiver));
        } else {
            auto receiver =
                std::make_unique<Requests>(plan, *queue.receive, *queue.mailbox, loop::RequestHandler{echo(), keeper_, *answers_[i]});
            requests_.push_back(receiver.get());
            receivers.push_back(std::move(receiver));
        }
    }
    return receivers;
}

pace::Schedule EchoTasks::schedule(pace::Ticks start, std::uint64_t first, std::uint64_t stride) const {
    return {plan_.directions.front().load(parts_.scale), start, parts_.scale.ticks_per_second(), first, stride};
}

std::unique_ptr<loop::SendingTask> EchoTasks::make_client(std::size_t queue, pace::Ticks start) {
    auto& queues = parts_.side(Side::left).queues;
    const pace::Ticks give_up = parts_.scale.ticks(request_.give_up_lateness);
    if (boards_.empty()) {
        const loop::SenderPlan plan{.frame_count = plan_.directions.front().frame_count,
                                    .first = queue,
                                    .stride = queues.size(),
                                    .schedule = schedule(start, queue, queues.size()),
                                    .mix = plan_.directions.front().mix,
                                    .give_up_lateness = give_up,
                                    .foreground_slot = slot_foreground,
                                    .background_slot = slot_background};
        auto sender = std::make_unique<ConstantRate>(plan, *queues[queue].transmit, parts_.clock, loop::EchoWriter{echo()});
        constant_rates_.push_back(sender.get());
        return sender;
    }
    const loop::ClosedLoopPlan plan{.echo = &echo(),
                                    .first = queue,
                                    .stride = queues.size(),
                                    .start = start,
                                    .end = {start.value + parts_.scale.ticks(request_.duration).value},
                                    .pace_without_reply = parts_.scale.ticks(*plan_.echo->pace_without_reply),
                                    .give_up_lateness = give_up,
                                    .slot = slot_foreground,
                                    .board = boards_[queue].get(),
                                    .steady = &steady_};
    auto sender = std::make_unique<ClosedLoop>(plan, *queues[queue].transmit, parts_.clock);
    closed_loops_.push_back(sender.get());
    return sender;
}

std::vector<std::unique_ptr<loop::SendingTask>> EchoTasks::make_senders(Direction direction, pace::Ticks start) {
    std::vector<std::unique_ptr<loop::SendingTask>> senders;
    auto& queues = parts_.side(sending_side(direction)).queues;
    const std::uint64_t clients = echo().numbers().shape().clients;
    if (direction == Direction::forward && boards_.empty() && plan_.directions.front().frame_count >= clients) {
        steady_.set(schedule(start, clients - 1, 1).begin().due(), {start.value + parts_.scale.ticks(request_.duration).value});
    }
    for (std::size_t queue = 0; queue < queues.size(); ++queue) {
        if (direction == Direction::forward) {
            senders.push_back(make_client(queue, start));
        } else {
            senders.push_back(std::make_unique<loop::ReplySender<io::TransmitQueue, pace::CycleClock>>(
                echo(), *answers_[queue], parts_.echo.answered, *queues[queue].transmit, slot_foreground, parts_.clock));
        }
    }
    return senders;
}

loop::Task* EchoTasks::timed(Side side, loop::Task& task) {
    auto& place = timed_[static_cast<std::size_t>(side)][&task];
    if (!place) {
        place = std::make_unique<loop::TimedTask<>>(task);
    }
    return place.get();
}

bool EchoTasks::has_offered(std::uint64_t index) const {
    if (!closed_loops_.empty()) {
        const frame::EchoPlace place = echo().numbers().place_of(index);
        return closed_loops_[static_cast<std::size_t>(place.client % closed_loops_.size())]->has_offered(place);
    }
    return !constant_rates_.empty() &&
           index < constant_rates_[static_cast<std::size_t>(index % constant_rates_.size())]->counts().offered_end;
}

record::LossFacts EchoTasks::losses(Direction direction) const {
    const std::uint64_t end = plan_.directions.front().frame_count;
    if (direction == Direction::forward) {
        return record::find_losses_among(parts_.memory(direction).arrivals, end, [&](std::uint64_t index) { return has_offered(index); });
    }
    return record::find_losses_among(parts_.memory(direction).arrivals, end,
                                     [&](std::uint64_t index) { return parts_.echo.answered.arrived(index); });
}

/// How many requests were the first to their destination. In each period of indexes these come
/// before all others.
std::uint64_t EchoTasks::first_requests() const {
    const frame::EchoShape& shape = echo().numbers().shape();
    const std::uint64_t period = shape.slots() * shape.count, end = plan_.directions.front().frame_count;
    std::uint64_t count = 0;
    for (std::uint64_t begin = 0; begin < end; begin += period) {
        for (std::uint64_t index = begin; index < std::min(begin + shape.slots(), end); ++index) {
            count += has_offered(index) ? 1 : 0;
        }
    }
    return count;
}

/// What the clients of a closed loop sent.
void EchoTasks::fill_sent(EchoReport& report, pace::Ticks start) const {
    for (std::size_t queue = 0; queue < closed_loops_.size(); ++queue) {
        const std::vector<loop::EchoClientSent>& sent = closed_loops_[queue]->clients();
        for (std::size_t i = 0; i < sent.size(); ++i) {
            EchoClientReport& client = report.clients[queue + i * closed_loops_.size()];
            client.counts[EchoCount::requests] = sent[i].requests;
            client.begin = since(start, sent[i].first);
            client.end = since(start, sent[i].last);
        }
        if (report.steady) {
            report.steady->requests += closed_loops_[queue]->steady_requests();
        }
    }
}

/// What they sent at a constant rate: request i is of client i mod clients and of sender i mod
/// senders, which offered those below its end.
void EchoTasks::fill_sent_at_rate(EchoReport& report, pace::Ticks start) const {
    const std::uint64_t clients = report.clients.size(), senders = constant_rates_.size(), period = clients * senders;
    std::vector<std::uint64_t> ends(report.clients.size());  ///< the index after the last request
    for (std::uint64_t first = 0; first < period; ++first) {
        const std::uint64_t end = constant_rates_[static_cast<std::size_t>(first % senders)]->counts().offered_end;
        // Of indexes first, first + period, ..., which leaves none out where `period` is a multiple
        // of both.
        if (end > first) {
            const auto client = static_cast<std::size_t>(first % clients);
            const std::uint64_t further = (end - 1 - first) / period;
            report.clients[client].counts[EchoCount::requests] += further + 1;
            ends[client] = std::max(ends[client], first + further * period + 1);
            if (report.steady) {
                report.steady->requests += further + (first >= clients - 1 ? 1 : 0);
            }
        }
    }
    for (std::size_t client = 0; client < ends.size(); ++client) {
        if (ends[client] != 0) {
            report.clients[client].begin = since(start, schedule(start, client, 1).begin().due());
            report.clients[client].end = since(start, schedule(start, ends[client] - 1, 1).begin().due());
        }
    }
}

EchoReport EchoTasks::report(pace::Ticks start) const {
    EchoReport report;
    report.clients.resize(static_cast<std::size_t>(echo().numbers().shape().clients));
    if (steady_.exists()) {
        report.steady = {.begin = since(start, steady_.begin()), .end = since(start, steady_.end())};
    }
    closed_loops_.empty() ? fill_sent_at_rate(report, start) : fill_sent(report, start);
    for (std::size_t i = 0; i < report.clients.size(); ++i) {
        EchoClientReport& client = report.clients[i];
        client.client = i;
        for (const Requests* const receiver : requests_) {
            const loop::EchoCounts& counts = receiver->clients()[i];
            client.counts[EchoCount::arrived] += counts[loop::EchoOutcome::received];
            client.counts[EchoCount::duplicate] += counts[loop::EchoOutcome::duplicate];
            client.counts[EchoCount::faulty] += counts[loop::EchoOutcome::faulty];
        }
        for (const Replies* const receiver : replies_) {
            const loop::EchoCounts& counts = receiver->clients()[i];
            client.counts[EchoCount::replies] += counts[loop::EchoOutcome::received];
            client.counts[EchoCount::late] += counts[loop::EchoOutcome::late];
            client.counts[EchoCount::duplicate] += counts[loop::EchoOutcome::duplicate];
            client.counts[EchoCount::faulty] += counts[loop::EchoOutcome::faulty];
            client.round_trips.add(receiver->handler().clients()[i]);
        }
        const std::uint64_t found = client.counts[EchoCount::replies] + client.counts[EchoCount::late] + client.counts[EchoCount::faulty];
        client.counts[EchoCount::lost] = client.counts[EchoCount::requests] > found ? client.counts[EchoCount::requests] - found : 0;
        report.all.add(client.round_trips);
    }
    report.first_requests = first_requests();
    for (const Replies* const receiver : replies_) {
        report.first.add(receiver->handler().first());
        if (report.steady) {
            report.steady->replies += receiver->handler().steady_replies();
        }
    }
    for (const auto& [side, busy] : {std::pair{Side::left, &report.client_busy}, std::pair{Side::right, &report.responder_busy}}) {
        for (const auto& [task, timed_task] : timed_[static_cast<std::size_t>(side)]) {
            *busy += parts_.scale.time(timed_task->busy());
        }
    }
    return report;
}

}  // namespace gatemark::trial
