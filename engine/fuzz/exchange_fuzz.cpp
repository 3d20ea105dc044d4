#include "fuzz/frame_queue.hpp"
#include "fuzz/frames.hpp"
#include "fuzz/holds.hpp"
#include "fuzz/reached.hpp"
#include "fuzz/scenarios.hpp"
#include "loop/exchange.hpp"

#include <algorithm>
#include <array>
#include <vector>

/// An exchange with a port that takes frames or not, and a gateway that sends anything meanwhile:
/// each frame of the list is sent once, in order, octet by octet and not before its time; whatever
/// arrives is kept as it is, goes to the responder, or is counted as not kept.
namespace gatemark::fuzz {
namespace {

using test::Bytes;

constexpr std::size_t list_max = 8, steps_max = 48, slot = 0, frame_bytes_max = 9518;
constexpr std::uint64_t begin = 1000;

constexpr std::array<std::string_view, 3> sent_names{"sent", "refused", "no_buffer"};
Reached reached_sent{"due_frame", sent_names};
constexpr std::array<std::string_view, 4> arrived_names{"kept", "for_the_responder", "not_for_us", "no_room"};
Reached reached_arrived{"arrived", arrived_names};

struct SharedClock {
    const std::uint64_t* ticks;
    [[nodiscard]] pace::Ticks now() const noexcept { return {*ticks}; }
};

/// Takes a frame, refuses it or has no buffer, as the script says.
class SomePort {
public:
    using Buffer = Bytes*;

    explicit SomePort(std::size_t longest) : buffer_(longest) {}

    std::size_t acquire(std::size_t /*slot*/, std::span<Buffer> burst) noexcept {
        holds(!held_, "one buffer at a time");
        if (!has_buffer) {
            return 0;
        }
        held_ = true;
        buffer_.resize(buffer_.capacity());
        burst[0] = &buffer_;
        return 1;
    }
    static std::byte* bytes(Buffer buffer) noexcept { return buffer->data(); }
    static void resize(Buffer buffer, std::size_t bytes) noexcept { buffer->resize(bytes); }
    std::size_t send(std::span<Buffer> burst) noexcept {
        if (!takes) {
            return 0;
        }
        taken.push_back(*burst[0]);
        held_ = false;
        return 1;
    }
    void release(std::span<Buffer> /*burst*/) noexcept { held_ = false; }
    [[nodiscard]] bool holds_a_buffer() const noexcept { return held_; }

    bool has_buffer = true, takes = true;
    std::vector<Bytes> taken;

private:
    Bytes buffer_;
    bool held_ = false;
};

/// Of any length, most of them short.
Bytes some_frame(Script& script) {
    const std::uint8_t kind = script.byte();
    if ((kind & 3U) == 0) {
        return raw_frame(script, 80);
    }
    if ((kind & 3U) == 1) {
        const std::size_t more = kind == 0xfdU ? 400 : 1;  // no port has such frames; they fill the store
        return Bytes(script.below(frame_bytes_max + 1) * more, static_cast<std::byte>(kind));
    }
    if ((kind & 3U) == 2) {
        Bytes frame = neighbor_message((kind & 8U) != 0, (kind & 4U) != 0 ? net::Family::ipv4 : net::Family::ipv6);
        damage(script, frame);
        return frame;
    }
    const auto& streams = scenarios()[script.below(scenarios().size())].streams[(kind >> 2U) & 1U];
    const frame::Stream& stream = *streams[0];
    Bytes frame = test::frame_in((kind & 8U) != 0 ? stream.sent() : stream.expected(), stream, 3, 6);
    damage(script, frame);
    return frame;
}

/// What arrives, and what must become of it.
class Arrivals {
public:
    explicit Arrivals(const std::uint64_t& now) : now_{now} {}

    void arrive(Script& script) {
        const Bytes frame = some_frame(script);
        const frame::Arrival arrival = frame::classify(frame, 0);
        queue_.put(frame);
        while (keeper_.poll()) {}
        std::size_t told = 0;
        while (mailbox_.take([&](const auto&) { return ++told != 0; })) {}
        const bool is_neighbour = arrival.kind == frame::ArrivalKind::neighbour;
        holds(told <= (is_neighbour && arrival.asks_or_answers ? 1U : 0U), "only questions and answers go to the responder");
        if (is_neighbour) {
            reached_arrived.note(arrival.asks_or_answers ? std::size_t{1} : 2);
            return;
        }
        if (frame.size() <= Keeper::store_bytes - used_) {
            used_ += frame.size();
            expected_.push_back({frame, now_});
            reached_arrived.note(0);
        } else {
            ++no_room_;
            reached_arrived.note(3);
        }
    }
    void check() const {
        holds(keeper_.not_kept() == no_room_ && keeper_.kept().size() == expected_.size(), "every frame is kept or counted");
        for (std::size_t i = 0; i < expected_.size(); ++i) {
            const auto& kept = keeper_.kept()[i];
            holds(std::ranges::equal(keeper_.bytes_of(kept), expected_[i].frame), "a frame is kept as it was");
            holds(kept.arrived.value == expected_[i].at, "a frame has the time of its arrival");
        }
    }

private:
    using Keeper = loop::FrameKeeper<FrameQueue, SharedClock>;
    struct Expected {
        Bytes frame;
        std::uint64_t at;
    };

    const std::uint64_t& now_;
    FrameQueue queue_;
    loop::NeighborMailbox mailbox_;
    Keeper keeper_{queue_, mailbox_, SharedClock{&now_}};
    std::vector<Expected> expected_;
    std::size_t used_ = 0;
    std::uint64_t no_room_ = 0;
};

/// A sender with its list, and when the next frame is due.
class Sending {
public:
    Sending(Script& script, const std::uint64_t& now) : now_{now}, list_{some_list(script)}, interval_{script.word()} {}
    void poll(std::uint8_t kind) {
        port_.has_buffer = kind % 8 != 7;
        port_.takes = kind % 8 != 6;
        const std::size_t before = port_.taken.size();
        const bool due = before < list_.size() && (before == 0 || now_ >= due_);
        const bool sent = sender_.poll();
        holds(sent == (due && port_.has_buffer && port_.takes), "a frame that is due is sent, and no other");
        holds(port_.taken.size() == before + (sent ? 1 : 0) && sender_.sent() == port_.taken.size(), "what is sent is counted");
        holds(!port_.holds_a_buffer(), "a buffer that was not taken is given back");
        if (sent) {
            due_ = (before == 0 ? now_ : due_) + interval_;
            holds(port_.taken.back() == list_[before], "frames are sent in order, as they are");
        }
        if (due) {
            reached_sent.note(sent ? std::size_t{0} : port_.has_buffer ? 1 : 2);
        }
    }

private:
    static std::vector<Bytes> some_list(Script& script) {
        std::vector<Bytes> list(script.below(list_max + 1));
        std::ranges::generate(list, [&] { return some_frame(script); });
        return list;
    }
    [[nodiscard]] std::size_t longest() const {
        std::size_t bytes = 0;
        for (const Bytes& frame : list_) {
            bytes = std::max(bytes, frame.size());
        }
        return bytes;
    }

    const std::uint64_t& now_;
    std::vector<Bytes> list_;
    std::uint64_t interval_, due_ = 0;
    SomePort port_{longest()};
    loop::FrameListSender<SomePort, SharedClock> sender_{list_, port_, slot, {interval_}, SharedClock{&now_}};
};

}  // namespace

void run(Script& script) {
    std::uint64_t now = begin;
    Arrivals arrivals{now};
    Sending sending{script, now};
    for (std::size_t step = 0; step < steps_max && !script.at_end(); ++step) {
        const std::uint8_t kind = script.byte();
        sending.poll(kind);
        now += script.word();
        if (kind % 2 == 0) {
            arrivals.arrive(script);
        }
    }
    arrivals.check();
}

}  // namespace gatemark::fuzz
