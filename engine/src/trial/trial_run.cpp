#include "trial/trial_run.hpp"

#include "base/wide.hpp"
#include "pace/calibrate.hpp"
#include "record/loss_ages.hpp"

#include <algorithm>
#include <functional>

namespace gatemark::trial {

using namespace std::chrono_literals;
using frame::signature::TrafficClass;

namespace {

using SteadyClock = std::chrono::steady_clock;

/// The time from handing the tasks to the workers to the first frame; every worker polls its new
/// list by then.
constexpr auto start_delay = 2ms;
/// How often the control thread checks whether everything is sent: near the end of the trial, and
/// before. Each check takes time from a CPU that the gateway may be working on, which shows in the
/// 99th percentile of the delays of a gateway in a namespace.
constexpr auto look_interval = 2ms, long_look_interval = 100ms;
/// Bursts that were later than this are kept: no queue is shorter than what became due meanwhile.
constexpr auto late = 50us;
/// Learning frames are sent for at most this many hosts per family; more would overflow a gateway's
/// neighbour table.
constexpr std::uint64_t taught_hosts_max = 4096;

/// A counter that went back, because the machine slept for example, counts as one that stood still.
ClockTimes times_since(const pace::ClockReading& begin, const pace::TickScale& scale) {
    const pace::ClockReading end = pace::read_clocks();
    const std::uint64_t ticks = end.ticks > begin.ticks ? end.ticks - begin.ticks : 0;
    const std::uint64_t nanoseconds = end.nanoseconds > begin.nanoseconds ? end.nanoseconds - begin.nanoseconds : 0;
    return {.cycle_counter = scale.time({ticks}), .monotonic_raw = std::chrono::nanoseconds{nanoseconds}};
}

}  // namespace

TrialRun::TrialRun(TesterParts& parts, const TrialRequest& request, const TrialPlan& plan, Watcher& watcher)
    : parts_{parts}, request_{request}, plan_{plan}, watcher_{watcher} {
    report_.trial_number = request.trial_number;
    report_.with_histograms = request.delays.histogram;
    if (plan.connections) {
        const ConnectionIdentity& identity = plan.connections->identity;
        keeper_.emplace(plan.connections->phase, parts.connections.table, identity.pool, identity.edge ? &*identity.edge : nullptr);
    }
    if (plan.echo) {
        echo_ = std::make_unique<EchoTasks>(parts, request, plan);
    }
}

TrialRun::~TrialRun() {
    parts_.hand_out(parts_.idle_lists);
    for (const PlacedSender& sender : senders_) {
        sender.sender->release_rest();
    }
}

TrialReport TrialRun::execute() {
    const auto begun = SteadyClock::now();  // memory and templates are prepared while the gateway settles
    const auto overflow = [this](std::size_t i) { return parts_.sides[i]->responder->drops()[loop::NeighborDrop::neighbour_overflow]; };
    const std::array<std::uint64_t, 2> overflow_before{overflow(0), overflow(1)};
    reset_memories();
    make_receivers();
    set_templates();
    if (pass("settle", request_.waits.settle, begun)) {
        teach();
    }
    if (!report_.cancelled && pass("learn", request_.waits.learn, SteadyClock::now())) {
        std::array<io::OwnDrops, 2> before{parts_.sides[0]->drops.read(), parts_.sides[1]->drops.read()};
        const pace::ClockReading begin = pace::read_clocks();
        next_link_look_ = SteadyClock::now();
        send();
        pass("drain", request_.waits.drain, SteadyClock::now());
        look_at_links();
        next_link_look_.reset();
        report_.clocks = times_since(begin, parts_.scale);
        for (const Side side : {Side::left, Side::right}) {
            const auto i = static_cast<std::size_t>(side);
            report_.ports[i].own_drops = parts_.sides[i]->drops.read().since(before[i]);
            report_.ports[i].neighbor_drops = parts_.sides[i]->responder->drops();
            report_.ports[i].neighbor_drops[loop::NeighborDrop::neighbour_overflow] -= overflow_before[i];
        }
    }
    parts_.hand_out(parts_.idle_lists);
    if (!lists_.empty()) {
        for (const auto& worker : parts_.workers) {
            report_.worker_pause_max = std::max(report_.worker_pause_max, parts_.scale.time(worker->longest_pause()));
        }
    }
    const auto rest_begun = SteadyClock::now();  // the report is made while it rests
    for (const DirectionPlan& direction : plan_.directions) {
        fill_direction(report_.directions.emplace_back(), direction);
    }
    for (const Side side : {Side::left, Side::right}) {
        fill_port(report_.ports[static_cast<std::size_t>(side)], side);
    }
    fill_kept_frames();
    fill_connections();
    if (echo_) {
        report_.echo = echo_->report(start_);
    }
    if (!report_.cancelled) {
        pass("rest", request_.waits.rest, rest_begun);
    }
    return std::move(report_);
}

void TrialRun::reset_memories() {
    for (const DirectionPlan& direction : plan_.directions) {
        DirectionMemory& memory = parts_.memory(direction.direction);
        const bool one_receiver = parts_.side(receiving_side(direction.direction)).queues.size() == 1;
        const auto receivers = one_receiver ? record::Receivers::one : record::Receivers::many;
        memory.arrivals.reset(direction.frame_count, receivers);
        if (direction.tags) {
            memory.tags.reset(*direction.tags);
        }
        if (request_.delays.variation) {
            for (record::DelayWindow& window : memory.windows) {
                window.reset(receivers);
            }
        }
    }
}

record::DelayPlan TrialRun::delay_plan(const DirectionPlan& direction) const {
    DirectionMemory& memory = parts_.memory(direction.direction);
    record::DelayPlan plan;
    if (request_.delays.timeout) {
        plan.timeout = parts_.scale.ticks(*request_.delays.timeout);
    }
    if (direction.tags) {
        plan.tags = &memory.tags;
    }
    if (request_.delays.variation) {
        plan.windows = {direction.foreground ? &memory.windows[0] : nullptr, direction.background ? &memory.windows[1] : nullptr};
    }
    return plan;
}

void TrialRun::make_receivers() {
    const pace::Ticks earliest = parts_.clock.now();
    for (const Side side : {Side::left, Side::right}) {
        if (echo_) {
            for (auto& receiver : echo_->make_receivers(side, earliest)) {
                receivers_.push_back({side, std::move(receiver)});
            }
            continue;
        }
        loop::ReceiverPlan plan{.trial_id = plan_.trial_id,
                                .earliest = earliest,
                                .directions = {},
                                .kept_frames_max = request_.kept_frames_max,
                                .sources = parts_.known_sources(side)};
        for (const DirectionPlan& direction : plan_.directions) {
            const auto number = static_cast<std::size_t>(direction.direction);
            plan.directions[number] = {.active = true,
                                       .arrives_here = receiving_side(direction.direction) == side,
                                       .frame_count = direction.frame_count,
                                       .mix = direction.mix,
                                       .streams = {direction.foreground ? &*direction.foreground : nullptr,
                                                   direction.background ? &*direction.background : nullptr},
                                       .arrivals = &parts_.memories[number].arrivals,
                                       .senders = Divider{parts_.side(sending_side(direction.direction)).queues.size()},
                                       .delays = delay_plan(direction),
                                       .keeper = keeper_ ? &*keeper_ : nullptr};
        }
        TesterSide& tester_side = parts_.side(side);
        for (QueuePair& queue : tester_side.queues) {
            receivers_.push_back({side, std::make_unique<Receiver>(plan, *queue.receive, *queue.mailbox)});
        }
    }
}

void TrialRun::make_senders(pace::Ticks start) {
    start_ = start;
    for (const DirectionPlan& direction : plan_.directions) {
        if (echo_) {
            for (auto& sender : echo_->make_senders(direction.direction, start)) {
                senders_.push_back({direction.direction, std::move(sender)});
            }
            continue;
        }
        auto& queues = parts_.side(sending_side(direction.direction)).queues;
        for (std::size_t queue = 0; queue < queues.size(); ++queue) {
            const loop::SenderPlan plan{
                .frame_count = direction.frame_count,
                .first = queue,
                .stride = queues.size(),
                .schedule = pace::Schedule{direction.load(parts_.scale), start, parts_.scale.ticks_per_second(), queue, queues.size()},
                .mix = direction.mix,
                .late = parts_.scale.ticks(std::min<std::chrono::nanoseconds>(late, request_.give_up_lateness)),
                .give_up_lateness = parts_.scale.ticks(request_.give_up_lateness),
                .foreground = direction.foreground ? &*direction.foreground : nullptr,
                .background = direction.background ? &*direction.background : nullptr,
                .foreground_slot = slot_foreground,
                .background_slot = slot_background};
            senders_.push_back({direction.direction, make_sender(plan, *queues[queue].transmit)});
        }
    }
}

std::unique_ptr<loop::SendingTask> TrialRun::make_sender(const loop::SenderPlan& plan, io::TransmitQueue& queue) {
    if (plan.foreground != nullptr && plan.foreground->role() == frame::Role::responder) {
        const state::ReplyWriter writer{*plan.foreground, parts_.connections.table, plan_.connections->identity.pool,
                                        plan.mix.numbers_are_indexes() ? plan.stride : 0};
        return std::make_unique<ReplySender>(plan, queue, parts_.clock, writer);
    }
    return std::make_unique<Sender>(plan, queue, parts_.clock);
}

void TrialRun::set_templates() {
    if (echo_) {
        echo_->set_templates();
    }
    for (const DirectionPlan& direction : plan_.directions) {
        for (QueuePair& queue : parts_.side(sending_side(direction.direction)).queues) {
            if (direction.foreground) {
                queue.pools[slot_foreground].set_template(direction.foreground->sent().frame);
            }
            if (direction.background) {
                queue.pools[slot_background].set_template(direction.background->sent().frame);
            }
        }
    }
}

std::vector<TaskList> TrialRun::task_lists() const {
    std::vector<TaskList> lists;
    for (const WorkerLayout& worker : parts_.layout.workers) {
        TaskList& list = lists.emplace_back();
        list.idle = false;
        for (const TaskPlace& place : worker.tasks) {
            TesterSide& side = parts_.side(place.side);
            if (place.kind == TaskKind::receive) {
                const auto first = std::find_if(receivers_.begin(), receivers_.end(),
                                                [&](const PlacedReceiver& receiver) { return receiver.side == place.side; });
                list.tasks.push_back(polled(place.side, *(first + place.queue)->receiver));
                continue;
            }
            if (place.queue == 0) {  // before the sender, which may leave no room in the port's ring
                list.tasks.push_back(side.responder.get());
            }
            const Direction direction = place.side == Side::left ? Direction::forward : Direction::reverse;
            const auto first =
                std::find_if(senders_.begin(), senders_.end(), [&](const PlacedSender& sender) { return sender.direction == direction; });
            if (first != senders_.end()) {
                list.tasks.push_back(polled(place.side, *(first + place.queue)->sender));
            }
        }
    }
    return lists;
}

Progress TrialRun::progress(const char* phase, std::chrono::nanoseconds elapsed) const {
    Progress progress{.phase = phase, .elapsed = elapsed, .directions = {}};
    for (const DirectionPlan& direction : plan_.directions) {
        Progress::Counts& counts = progress.directions.emplace_back(Progress::Counts{.direction = direction.direction});
        for (const PlacedSender& sender : senders_) {
            counts.offered += sender.direction == direction.direction ? sender.sender->offered_so_far() : 0;
        }
        for (const PlacedReceiver& receiver : receivers_) {
            counts.received += receiver.side == receiving_side(direction.direction) ? receiver.receiver->received_so_far() : 0;
        }
    }
    return progress;
}

bool TrialRun::pass(const char* phase, std::chrono::nanoseconds time, SteadyClock::time_point start) {
    auto next_progress = start + request_.progress;
    for (auto now = SteadyClock::now(); now - start < time && !report_.cancelled; now = SteadyClock::now()) {
        const auto rest = time - (now - start);
        report_.cancelled =
            !watcher_.wait(std::min<std::chrono::nanoseconds>(rest, std::max<std::chrono::nanoseconds>(next_progress - now, 1ms)));
        follow_clocks();
        look_at_links();
        if (SteadyClock::now() >= next_progress) {
            watcher_.report(progress(phase, SteadyClock::now() - start));
            next_progress += request_.progress;
        }
    }
    report_.phases.push_back({phase, SteadyClock::now() - start});
    return !report_.cancelled;
}

/// Learning frames (RFC 2544 section 23 b and appendix C.2.4.1): the gateway is asked from every
/// emulated host, so it learns where each one is before the first test frame waits for it.
void TrialRun::teach() {
    for (const auto& side : parts_.sides) {
        std::vector<Responder::Question> questions;
        for (const KnownGateway& known : side->gateways) {
            questions.push_back({known.gateway, known.source});
            for (const frame::AnsweredHosts& hosts : side->responder->hosts()) {
                if (!side->teach_hosts || hosts.family() != known.gateway.family) {
                    continue;
                }
                for (std::uint64_t i = 0; i < std::min(hosts.count(), taught_hosts_max); ++i) {
                    questions.push_back({known.gateway, hosts.at(i)});
                }
            }
        }
        side->responder->ask_for(std::move(questions));
    }
}

std::chrono::nanoseconds TrialRun::until_next_look(std::chrono::nanoseconds left) const {
    const bool follows =
        std::any_of(parts_.sides.begin(), parts_.sides.end(), [](const auto& side) { return side->port.receive_clock() != nullptr; });
    return follows ? look_interval : std::clamp<std::chrono::nanoseconds>(left - look_interval, look_interval, long_look_interval);
}

void TrialRun::follow_clocks() {
    for (const auto& side : parts_.sides) {
        if (io::ReceiveClock* const clock = side->port.receive_clock()) {
            clock->follow();
        }
    }
}

void TrialRun::look_at_links() {
    const auto now = SteadyClock::now();
    if (!next_link_look_ || now < *next_link_look_) {
        return;
    }
    next_link_look_ = now + long_look_interval;
    for (const Side side : {Side::left, Side::right}) {
        const auto i = static_cast<std::size_t>(side);
        const bool up = parts_.side(side).port.facts().link_up;
        report_.ports[i].link_losses += links_up_[i] && !up ? 1 : 0;
        links_up_[i] = up;
    }
}

bool TrialRun::all_sent() const {
    return std::all_of(senders_.begin(), senders_.end(), [](const PlacedSender& sender) { return sender.sender->finished(); });
}

bool TrialRun::one_gave_up() const {
    return std::any_of(senders_.begin(), senders_.end(),
                       [](const PlacedSender& sender) { return sender.sender->finished() && sender.sender->counts().gave_up; });
}

void TrialRun::count_while_idle() {
    for (const Side side : {Side::left, Side::right}) {
        const bool is_told = parts_.known_sources(side).other_port.has_value();
        for (QueuePair& queue : parts_.side(side).queues) {
            const std::uint64_t count = queue.idle_receiver->foreign()[record::ForeignFrame::of_other_port],
                                before = queue.idle_of_other_port;
            report_.ports[static_cast<std::size_t>(side)].foreign[record::ForeignFrame::of_other_port] += is_told ? count - before : 0;
            queue.idle_of_other_port = count;
        }
    }
}

void TrialRun::send() {
    follow_clocks();
    for (const auto& side : parts_.sides) {
        if (io::ReceiveClock* const clock = side->port.receive_clock()) {
            clock->forget_error();
        }
    }
    const auto begun = SteadyClock::now();
    // Every worker listens before any of them sends: an idle list would take frames and drop them.
    listening_ = task_lists();
    parts_.hand_out(listening_);
    count_while_idle();
    make_senders({parts_.clock.now().value + parts_.scale.ticks(start_delay).value});
    lists_ = task_lists();
    parts_.hand_out(lists_);
    auto next_progress = begun + request_.progress;
    while (!all_sent() && !one_gave_up() && !report_.cancelled) {
        report_.cancelled = !watcher_.wait(until_next_look(request_.duration + start_delay - (SteadyClock::now() - begun)));
        follow_clocks();
        look_at_links();
        if (SteadyClock::now() >= next_progress) {
            watcher_.report(progress("send", SteadyClock::now() - begun));
            next_progress += request_.progress;
        }
    }
    if (report_.cancelled) {
        parts_.hand_out(parts_.idle_lists);
    }
    for (const PlacedSender& placed : senders_) {
        placed.sender->stop();
    }
    report_.phases.push_back({"send", SteadyClock::now() - begun});
}

void TrialRun::fill_direction(DirectionReport& report, const DirectionPlan& plan) const {
    report.direction = plan.direction;
    report.frames_per_second = plan.frames_per_second;
    report.intended_duration = request_.duration;
    for (const PlacedSender& placed : senders_) {
        if (placed.direction != plan.direction) {
            continue;
        }
        const loop::SendCounts& counts = placed.sender->counts();
        report.gave_up |= counts.gave_up;
        report.refused += counts.refused;
        report.lateness.add(counts.lateness);
        report.foreground.offered += counts.offered_foreground;
        report.background.offered += counts.offered_background;
        if (counts.last_handover > start_) {
            report.sending = std::max(report.sending, parts_.scale.time({counts.last_handover.value - start_.value}));
        }
    }
    report.lateness_max = parts_.scale.time(report.lateness.maximum());
    report.foreground.intended = plan.intended_foreground();
    report.background.intended = plan.intended_background();
    fill_class(report.foreground, plan, TrafficClass::foreground);
    fill_class(report.background, plan, TrafficClass::background);
    if (echo_) {
        report.foreground.loss = echo_->losses(plan.direction);
        if (plan.direction == Direction::reverse) {  // the requests that arrived decide on the replies
            report.foreground.intended = report.foreground.offered;
        }
    } else if (const auto offered_end = offered_ends(plan.direction); !offered_end.empty()) {
        auto losses = record::find_losses(parts_.memory(plan.direction).arrivals, plan.mix, offered_end);
        report.foreground.loss = std::move(losses.foreground);
        report.background.loss = std::move(losses.background);
        explain_losses(report, plan, offered_end);
    }
    report.foreground.lost = report.foreground.loss.lost;
    report.background.lost = report.background.loss.lost;
}

std::vector<std::uint64_t> TrialRun::offered_ends(Direction direction) const {
    std::vector<std::uint64_t> ends;
    for (const PlacedSender& placed : senders_) {
        if (placed.direction == direction) {
            ends.push_back(placed.sender->counts().offered_end);
        }
    }
    return ends;
}

void TrialRun::explain_losses(DirectionReport& report, const DirectionPlan& plan, std::span<const std::uint64_t> offered_end) const {
    const auto looked_at = [](const std::optional<frame::Stream>& stream, const ClassReport& counts) {
        const std::uint64_t lost = counts.loss.lost;
        return record::LossyClass{
            .stream = stream ? &*stream : nullptr, .lost = lost, .arrived = counts.offered - std::min(lost, counts.offered)};
    };
    const std::array<record::LossyClass, 2> classes{looked_at(plan.foreground, report.foreground),
                                                    looked_at(plan.background, report.background)};
    if (classes[0].lost + classes[1].lost == 0) {
        return;
    }
    const record::ArrivalBitmap& arrivals = parts_.memory(plan.direction).arrivals;
    report.longest_loss_runs = record::find_longest_runs(arrivals, offered_end);
    report.late_bursts = late_bursts(plan.direction);
    auto tables = record::tabulate_losses(arrivals, plan.mix, offered_end, classes);
    report.foreground.loss_table = std::move(tables[0]);
    if (report.foreground.loss_table && plan_.connections && plan_.connections->phase == state::Phase::use && parts_.connections.pace) {
        report.foreground.loss_table->ages = loss_ages(plan);
    }
    report.background.loss_table = std::move(tables[1]);
}

std::vector<LateBurst> TrialRun::late_bursts(Direction direction) const {
    std::vector<LateBurst> bursts;
    for (const PlacedSender& placed : senders_) {
        if (placed.direction == direction) {
            for (const auto& burst : placed.sender->counts().late_bursts.catch_ups()) {
                bursts.push_back({burst.index, burst.end - burst.index, parts_.scale.time(burst.lateness)});
            }
        }
    }
    std::ranges::sort(bursts, std::greater{}, &LateBurst::lateness);
    bursts.resize(std::min(bursts.size(), record::LateBursts::kept));
    std::ranges::sort(bursts, {}, &LateBurst::index);
    return bursts;
}

std::optional<record::LossTable::Ages> TrialRun::loss_ages(const DirectionPlan& plan) const {
    std::array<record::UsedDirection, 2> used;
    std::array<std::vector<std::uint64_t>, 2> offered_end;
    for (const DirectionPlan& direction : plan_.directions) {
        const pace::Load load = direction.load(parts_.scale);
        if (load.step || load.bursts || load.flow_start) {
            return std::nullopt;  // an index is no time
        }
        const std::size_t k = direction.direction == plan.direction ? 0 : 1;
        offered_end[k] = offered_ends(direction.direction);
        used[k] = {.arrivals = &parts_.memory(direction.direction).arrivals,
                   .mix = &direction.mix,
                   .stream = direction.foreground ? &*direction.foreground : nullptr,
                   .offered_end = offered_end[k],
                   .frames_per_second = direction.frames_per_second};
    }
    const ConnectionMemory::Pace& pace = *parts_.connections.pace;
    const std::chrono::nanoseconds since = parts_.scale.time({start_.value - pace.start.value});
    return record::find_loss_ages(used, plan_.connections->identity.count, [&](std::uint64_t connection) {
        constexpr std::uint64_t second = 1'000'000'000;
        const Wide after = static_cast<Wide>(connection) * second / pace.connections_per_second;
        return std::chrono::nanoseconds{static_cast<std::int64_t>(after)} - since;
    });
}

void TrialRun::fill_class(ClassReport& report, const DirectionPlan& plan, TrafficClass traffic_class) const {
    const std::optional<frame::Stream>& stream = traffic_class == TrafficClass::foreground ? plan.foreground : plan.background;
    if (stream) {
        report.frame_octets = stream->sent().frame_octets();
    }
    for (const PlacedReceiver& receiver : receivers_) {
        report.counts.add(receiver.receiver->counts(plan.direction, traffic_class));
        if (const record::DelayRecorder* const recorder = receiver.receiver->delays(plan.direction)) {
            report.delays.add(recorder->delays(static_cast<std::size_t>(traffic_class)));
        }
    }
    if (plan.tags) {
        report.tags = tags_of(plan, traffic_class);
    }
}

/// Frames of both classes carry tags; this selects those of one class.
record::TagFacts TrialRun::tags_of(const DirectionPlan& plan, TrafficClass traffic_class) const {
    const record::TaggedDelays& tags = parts_.memory(plan.direction).tags;
    std::vector<std::uint64_t> delays;
    std::uint64_t count = 0;
    for (std::uint64_t k = 0; k < plan.tags->count; ++k) {
        if (plan.mix.place_of(plan.tags->index_of(k)).foreground != (traffic_class == TrafficClass::foreground)) {
            continue;
        }
        ++count;
        if (const auto delay = tags.delay(k)) {
            delays.push_back(delay->value);
        }
    }
    return record::tag_facts(std::move(delays), count);
}

void TrialRun::fill_port(PortReport& report, Side side) const {
    const TesterSide& tester_side = parts_.side(side);
    report.link_up = tester_side.port.facts().link_up;
    if (const io::ReceiveClock* const clock = tester_side.port.receive_clock()) {
        report.clock_error = parts_.scale.time(clock->error());
    }
    for (const PlacedReceiver& receiver : receivers_) {
        if (receiver.side == side) {
            report.received_by_queue.push_back(receiver.receiver->received_so_far());
            report.foreign.add(receiver.receiver->foreign());
        }
    }
}

/// A connection is established once its frame has arrived without a fault: only then has it an
/// entry in the state table. Where connections are drawn, several frames have one entry.
void TrialRun::fill_connections() {
    if (!plan_.connections) {
        return;
    }
    if (plan_.connections->phase == state::Phase::establish) {
        parts_.connections.pace.reset();
        if (const DirectionPlan* const upload = plan_.direction(plan_.connections->upload());
            upload != nullptr && !plan_.connections->draws && upload->mix.numbers_are_indexes()) {
            parts_.connections.pace = {.start = start_, .connections_per_second = upload->frames_per_second};
        }
        parts_.connections.established = plan_.connections->draws ? parts_.connections.table.filled()
                                                                  : report_.directions.front().foreground.counts[record::Count::received];
    }
    report_.connections = {
        .phase = plan_.connections->phase, .count = plan_.connections->identity.count, .established = parts_.connections.established};
}

void TrialRun::fill_kept_frames() {
    for (const PlacedReceiver& placed : receivers_) {
        placed.receiver->kept().visit([&](const record::KeptFrames::Kept& kept) {
            report_.kept_frames.push_back(
                {placed.side, std::string{loop::kept_reason_name(kept.reason)}, std::vector<std::byte>(kept.data, kept.data + kept.bytes)});
        });
    }
}

}  // namespace gatemark::trial
