#pragma once

#include "pace/clock.hpp"
#include "pace/tick_scale.hpp"
#include "refdut/departures.hpp"
#include "refdut/icmp_error.hpp"
#include "refdut/program.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <span>

namespace gatemark::refdut {

/// What the control thread asks of the worker, and the answer.
struct Command {
    enum class Kind : std::uint8_t { counts, reset_counts, load, clear, reset };
    Kind kind = Kind::counts;
    Program* program = nullptr;     ///< of load: lives until the next one has been loaded
    std::uint64_t duration_ns = 0;  ///< of reset
    Snapshot snapshot{};            ///< of counts
    bool out_of_memory = false;     ///< it was not executed
};

/// The gateway: two ports, one thread. Nothing here allocates, locks or throws, except `execute`.
///
/// The time of arrival is read after the poll that returned the frame; all frames of one poll
/// arrive at the same time. Test frames then pass, in this order: reset, capacity and queue,
/// translation, length, neighbour, the selectors (impairment.hpp), delay. They are handed to the
/// port when service ends plus the delay, or as soon after that as the loop gets there. All other
/// frames leave at once.
template <ForwardsFrames Port, pace::TickClock Clock = pace::CycleClock>
class Gateway {
public:
    using Buffer = typename Port::Buffer;

    Gateway(Program& program, Port& left, Port& right, std::uint64_t ticks_per_second, const Clock& clock = {})
        : scale_{ticks_per_second},
          clock_{clock},
          ports_{&left, &right},
          departures_{Out{program.settings.held_frames, right, left, counts_.directions[0], clock_, times()},
                      Out{program.settings.held_frames, left, right, counts_.directions[1], clock_, times()}},
          program_{&program},
          start_{clock_.now().value},
          counts_since_{start_} {}
    Gateway(const Gateway&) = delete;
    Gateway& operator=(const Gateway&) = delete;

    /// One round; false if nothing arrived and nothing left.
    void poll() noexcept {
        const std::uint64_t now = clock_.now().value, gap = now - last_poll_;
        last_poll_ = now;
        bool waited = departures_[0].held() + departures_[1].held() > 0;
        waited |= receive(Side::left);
        departures_[0].flush();
        waited |= receive(Side::right);
        departures_[1].flush();
        if (waited) {  // else nobody was held up
            counts_.poll_gap_max = std::max(counts_.poll_gap_max, gap);
        }
        const std::uint64_t then = departures_[0].held() + departures_[1].held() > 0 ? clock_.now().value : now;
        for (Out& departures : departures_) {
            departures.depart(then);
            departures.flush();
        }
        if (++counts_.polls % polls_per_expiry == 0 && program_->table != nullptr) {
            program_->table->expire(ns_since_start(now), connections_per_expiry);
        }
    }

    /// Call it between two polls, in the thread that polls.
    void execute(Command& command) {
        switch (command.kind) {
            case Command::Kind::counts: command.snapshot = snapshot(); break;
            case Command::Kind::reset_counts: reset_counts(); break;
            case Command::Kind::load: load(*command.program); break;
            case Command::Kind::clear:
                if (program_->table != nullptr) {
                    program_->table->clear();
                }
                break;
            case Command::Kind::reset: reset(command.duration_ns); break;
        }
    }

private:
    using Out = Departures<Port, Clock>;
    using Frame = Leaving<Buffer>;
    static constexpr std::size_t burst_frames_max = 32;
    static constexpr std::uint64_t polls_per_expiry = 64;
    static constexpr std::size_t connections_per_expiry = 64;
    static constexpr std::chrono::nanoseconds late_after{10'000}, reorder_wait{100'000'000}, question_pause{10'000'000},
        error_pause{1'000'000};

    [[nodiscard]] DepartureTimes times() const noexcept {
        return {.late_ticks = scale_.ticks(late_after).value, .reorder_wait_ticks = scale_.ticks(reorder_wait).value};
    }
    [[nodiscard]] std::uint64_t ns_since_start(std::uint64_t ticks) const noexcept {
        return static_cast<std::uint64_t>(scale_.time({ticks - start_}).count());
    }
    [[nodiscard]] static constexpr std::size_t number(Side side) noexcept { return static_cast<std::size_t>(side); }
    void release(Side side, Buffer buffer) noexcept { ports_[number(side)]->release(std::span{&buffer, 1}); }
    /// Sends one frame at once. If the port does not accept it, releases it and returns false.
    bool send_now(Side side, Buffer buffer) noexcept {
        if (ports_[number(side)]->send(std::span{&buffer, 1}) == 1) {
            return true;
        }
        release(side, buffer);
        return false;
    }

    /// Returns whether there was anything.
    bool receive(Side side) noexcept {
        const std::size_t received = ports_[number(side)]->receive(burst_);
        if (received == 0) {
            return false;
        }
        arrival_ = clock_.now().value;
        arrival_ns_ = ns_since_start(arrival_);
        resetting_ = arrival_ < reset_until_;
        counts_.directions[number(side)][DirectionCount::received] += received;
        for (const Buffer buffer : std::span{burst_}.first(received)) {
            __builtin_prefetch(Port::frame(buffer).begin);
        }
        program_->translator.look_ahead(side, received, [&](std::size_t i) { return packet_of<Port>(burst_[i]); });
        for (std::size_t i = 0; i < received; ++i) {
            take(side, burst_[i]);
        }
        return true;
    }

    void take(Side side, Buffer buffer) noexcept {
        Packet packet = packet_of<Port>(buffer);
        Neighbours& neighbours = program_->neighbours[number(side)];
        const bool ours = is_for(packet, neighbours.config().own_mac) && vlan_of(packet) == neighbours.config().vlan_id;
        if (ours && program_->test_frames.has(packet)) {
            take_test_frame(side, buffer, packet);
        } else if (!ours || resetting_) {
            ++counts_.other[OtherCount::dropped];
            release(side, buffer);
        } else {
            take_other(side, buffer, packet, neighbours);
        }
    }

    /// The gateway's own Ethernet address, or a group address.
    [[nodiscard]] static bool is_for(const Packet& packet, const net::MacAddress& own_mac) noexcept {
        return packet.bytes >= ethernet_bytes &&
               ((packet.begin[0] & std::byte{1}) != std::byte{0} || std::memcmp(packet.begin, own_mac.data(), own_mac.size()) == 0);
    }

    void take_other(Side side, Buffer buffer, Packet& packet, Neighbours& neighbours) noexcept {
        neighbours.take({packet.begin, packet.bytes}, taken_);
        if (taken_.consumed) {
            ++counts_.neighbour[NeighbourCount::received];
            if (taken_.answer && send_written(side, buffer, taken_.answer_frame.span())) {
                ++counts_.neighbour[NeighbourCount::answered];
            } else if (!taken_.answer) {
                release(side, buffer);
            }
            return;
        }
        Notes notes;
        const Drop drop = program_->translator.translate(side, packet, arrival_ns_, notes);
        const Side out = notes.hairpinned ? side : other(side);
        const bool leaves = drop == Drop::none && fits(out, packet) &&
                            set_vlan(packet, program_->neighbours[number(out)].config().vlan_id) &&
                            program_->neighbours[number(out)].address(packet);
        if (!leaves) {
            ++counts_.other[OtherCount::dropped];
            release(side, buffer);
            return;
        }
        Port::set_frame(buffer, packet.begin, packet.bytes);
        ++(send_now(out, buffer) ? counts_.other[OtherCount::forwarded] : counts_.other[OtherCount::dropped]);
    }

    void take_test_frame(Side side, Buffer buffer, Packet& packet) noexcept {
        const std::size_t direction = number(side);
        DirectionCounts& counts = counts_.directions[direction];
        Program::Way& way = program_->ways[direction];
        ++counts[DirectionCount::test_frames];
        if (!first_test_frame_[direction]) {
            first_test_frame_[direction] = arrival_ns_;
        }
        if (resetting_) {
            counts.drop(OwnDrop::reset);
            release(side, buffer);
            return;
        }
        if (way.flows) [[unlikely]] {
            way.shaper.set_flows(arrival_, std::max<std::size_t>(1, way.flows->add(packet)));
        }
        const Shaper::Answer served = way.shaper.arrive(arrival_);
        if (served.verdict != Shaper::Verdict::served) {
            counts.drop(served.verdict == Shaper::Verdict::queue_full ? OwnDrop::queue_full : OwnDrop::recovery);
            release(side, buffer);
            return;
        }
        Notes notes;
        if (!translate(side, buffer, packet, counts, notes)) {
            return;
        }
        Frame frame{.buffer = buffer, .arrival = arrival_, .due = served.end_ticks, .hairpinned = notes.hairpinned};
        if (way.impaired) [[unlikely]] {
            impair(side, packet, notes, frame);
            return;
        }
        frame.due += way.delay.next();
        Port::set_frame(buffer, packet.begin, packet.bytes);
        departures_[direction].take(frame, arrival_, way.keep_order);
    }

    /// Turns the frame into one that leaves; false if it was dropped.
    [[nodiscard]] bool translate(Side side, Buffer buffer, Packet& packet, DirectionCounts& counts, Notes& notes) noexcept {
        if (const Drop drop = program_->translator.translate(side, packet, arrival_ns_, notes); drop != Drop::none) {
            counts.drop(drop);
            if (!notes.error_wanted || !send_error(side, buffer, packet, drop)) {
                release(side, buffer);
            }
            return false;
        }
        const Side out = notes.hairpinned ? side : other(side);
        Neighbours& beyond = program_->neighbours[number(out)];
        std::optional<OwnDrop> reason;
        if (!fits(out, packet)) {
            reason = OwnDrop::too_long;
        } else if (!set_vlan(packet, beyond.config().vlan_id)) {
            reason = OwnDrop::no_room;
        } else if (!beyond.address(packet)) {
            reason = OwnDrop::no_neighbour;
        }
        if (!reason) {
            return true;
        }
        counts.drop(*reason);
        if (*reason != OwnDrop::no_neighbour || !ask(out, buffer, packet)) {
            release(side, buffer);
        }
        return false;
    }

    [[nodiscard]] bool fits(Side out, const Packet& packet) const noexcept {
        const std::size_t link = ethernet_bytes + (vlan_of(packet) ? vlan_bytes : 0);
        return packet.bytes <= link + program_->settings.sides[number(out)].mtu;
    }

    void impair(Side side, Packet& packet, const Notes& notes, Frame& frame) noexcept {
        const std::size_t direction = number(side);
        Program::Way& way = program_->ways[direction];
        Out& departures = departures_[direction];
        const Fate fate = way.impairments.next(arrival_ns_ - *first_test_frame_[direction], [&](Field field) {
            // A frame that goes back needs a known neighbour there, and must not be one that does.
            return field == Field::wrong_port && (notes.hairpinned || !program_->neighbours[direction].address(packet))
                       ? Fields{}
                       : corrupt(field, packet, notes, program_->table.get());
        });
        if (fate.kind == Fate::Kind::lose) {
            ++counts_.directions[direction][DirectionCount::lost];
            release(side, frame.buffer);
            return;
        }
        frame.due += way.delay.next();
        Port::set_frame(frame.buffer, packet.begin, packet.bytes);
        frame.field = fate.field;
        frame.reasons = fate.reasons;
        frame.by = fate.by;
        Frame copy = frame;
        if (fate.kind == Fate::Kind::duplicate) {  // before the original is handed over
            copy.buffer = Port::copy(frame.buffer);
            copy.kind = Frame::Kind::copy;
        }
        departures.take(frame, arrival_, way.keep_order);
        if (fate.kind != Fate::Kind::duplicate) {
            return;
        }
        if (copy.buffer == Buffer{}) {
            ++counts_.directions[direction][DirectionCount::copies_failed];
        } else {
            departures.take(copy, arrival_, way.keep_order);
        }
    }

    /// Replaces the contents of the buffer with `bytes` and sends it. If the port does not accept
    /// it, releases it and returns false.
    bool send_written(Side side, Buffer buffer, std::span<const std::byte> bytes) noexcept {
        const auto frame = Port::frame(buffer);
        if (bytes.size() > frame.bytes + frame.tailroom) {
            release(side, buffer);
            return false;
        }
        std::memcpy(frame.begin, bytes.data(), bytes.size());
        Port::set_frame(buffer, frame.begin, bytes.size());
        return send_now(side, buffer);
    }

    /// Sends a neighbour request for the frame's destination on side `out`, in the frame's buffer.
    /// False, and the buffer is untouched, if it is too early to ask again or this side has no
    /// address to ask from.
    [[nodiscard]] bool ask(Side out, Buffer buffer, const Packet& packet) noexcept {
        if (arrival_ < next_question_[number(out)]) {
            return false;
        }
        View view;
        if (read_headers(packet, view) != Drop::none) {
            return false;
        }
        net::Address target{.family = view.family};
        std::memcpy(target.bytes.data(), packet.at(view.destination()), view.address_bytes());
        const NeighbourFrame question = program_->neighbours[number(out)].question(target);
        if (question.bytes == 0) {
            return false;
        }
        next_question_[number(out)] = arrival_ + scale_.ticks(question_pause).value;
        counts_.neighbour[NeighbourCount::asked] += send_written(out, buffer, question.span()) ? 1 : 0;
        return true;
    }

    /// Tells the sender of a frame that it was refused, in the frame's buffer, at most once per
    /// millisecond (RFC 4443 section 2.4 (f)). False, and the buffer is untouched, if there is
    /// nothing to send.
    [[nodiscard]] bool send_error(Side side, Buffer buffer, const Packet& refused, Drop why) noexcept {
        const SideSettings& side_settings = program_->settings.sides[number(side)];
        if (arrival_ < next_error_) {
            return false;
        }
        error_.bytes = 0;
        for (const auto& address : {side_settings.ipv4, side_settings.ipv6}) {
            if (address && error_.bytes == 0) {
                write_refusal(refused, why, *address, error_);
            }
        }
        if (error_.bytes == 0) {
            return false;
        }
        next_error_ = arrival_ + scale_.ticks(error_pause).value;
        counts_.other[OtherCount::icmp_errors] += send_written(side, buffer, std::span{error_.data}.first(error_.bytes)) ? 1 : 0;
        return true;
    }

    [[nodiscard]] Snapshot snapshot() const noexcept {
        Snapshot taken{.counts = counts_, .table = {}, .elapsed = clock_.now().value - counts_since_};
        for (std::size_t i = 0; i < 2; ++i) {
            taken.counts.directions[i][DirectionCount::not_applicable] = program_->ways[i].impairments.not_applicable();
        }
        if (program_->table != nullptr) {
            taken.table = program_->table->counters();
            taken.connections = program_->table->size();
            taken.capacity = program_->table->limits().capacity;
        }
        return taken;
    }

    static void forget_flows(Program::Way& way) noexcept {
        if (way.flows) {
            way.flows->clear();
        }
    }

    /// Flows, selectors and delays restart as well; frames still held are in none of the new
    /// counts.
    void reset_counts() noexcept {
        counts_ = {};
        first_test_frame_ = {};
        for (std::size_t i = 0; i < 2; ++i) {
            departures_[i].begin_epoch();
            forget_flows(program_->ways[i]);
            program_->ways[i].delay.restart();
            program_->ways[i].impairments.restart();
        }
        if (program_->table != nullptr) {
            program_->table->reset_counters();
        }
        last_poll_ = counts_since_ = clock_.now().value;
    }

    void load(Program& program) {
        for (std::size_t i = 0; i < 2; ++i) {
            if (program.keeps_neighbours[i]) {
                program.neighbours[i] = program_->neighbours[i];
            }
        }
        if (program.table != nullptr && program.table == program_->table) {
            program.table->set_limits(program.settings.table, ns_since_start(clock_.now().value));
        }
        program_ = &program;
        reset_counts();
    }

    /// The gateway forgets everything that it knows or holds, and drops whatever arrives within
    /// `duration_ns`. Neighbours stay known, because learning them again would take extra time.
    void reset(std::uint64_t duration_ns) noexcept {
        for (std::size_t i = 0; i < 2; ++i) {
            departures_[i].drop_held();
            program_->ways[i].shaper.clear();
            forget_flows(program_->ways[i]);
        }
        const std::uint64_t now = clock_.now().value;
        if (program_->table != nullptr) {
            program_->table->clear();
        }
        reset_until_ = now + scale_.ticks(std::chrono::nanoseconds{static_cast<std::int64_t>(duration_ns)}).value;
    }

    pace::TickScale scale_;
    Clock clock_;
    std::array<Port*, 2> ports_;
    GatewayCounts counts_;
    std::array<Out, 2> departures_;  ///< forward, reverse
    Program* program_;
    std::uint64_t start_, counts_since_, last_poll_ = start_;
    std::uint64_t reset_until_ = 0;
    // Of the current burst.
    std::array<Buffer, burst_frames_max> burst_{};
    std::uint64_t arrival_ = 0, arrival_ns_ = 0;
    bool resetting_ = false;
    std::array<std::optional<std::uint64_t>, 2> first_test_frame_{};  ///< ns since start, by direction
    std::array<std::uint64_t, 2> next_question_{};
    std::uint64_t next_error_ = 0;
    Neighbours::Taken taken_;
    ErrorFrame error_;
};

}  // namespace gatemark::refdut
