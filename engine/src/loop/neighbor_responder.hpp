#pragma once

#include "frame/answered_hosts.hpp"
#include "frame/burst.hpp"
#include "io/port.hpp"
#include "loop/neighbor_mailbox.hpp"
#include "loop/neighbor_messages.hpp"
#include "loop/task.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace gatemark::loop {

/// Answers ARP requests and neighbour solicitations for every emulated host of one port at all
/// times, also under load. Asks for the gateway's address and sends learning frames when the
/// control thread wants it. It shares its transmit queue with a sender, so both run on one worker.
/// What the port does not take now is sent in a later poll.
template <io::TransmitsFrames Queue>
class NeighborResponder final : public Task {
public:
    struct Slots {
        std::size_t arp, discovery;  ///< template slots of the queue, with frames of `neighbor_frame_bytes`
    };
    struct Question {
        net::Address target, source;
    };

    /// `mailboxes`: one for each receiver of the port.
    NeighborResponder(const NeighborLink& link, std::vector<frame::AnsweredHosts> hosts, Queue& queue,
                      std::vector<NeighborMailbox*> mailboxes, Slots slots)
        : link_{link}, hosts_{std::move(hosts)}, queue_{queue}, mailboxes_{std::move(mailboxes)}, slots_{slots} {
        facts_.reserve(facts_max);
    }

    bool poll() noexcept override {
        bool busy = false;
        for (NeighborMailbox* const mailbox : mailboxes_) {
            for (unsigned i = 0;
                 i < letters_per_poll && mailbox->take([this](const NeighborMailbox::Letter& letter) { return read(letter.frame()); });
                 ++i) {
                busy = true;
            }
        }
        if (questions_waiting_.load(std::memory_order_acquire)) {
            ask();
            busy = true;
        }
        return busy;
    }

    /// For the control thread: sends these questions, a few in each poll. `mac_of` looks the
    /// answers up.
    void ask_for(std::vector<Question> questions) {
        const std::lock_guard lock{mutex_};
        questions_.insert(questions_.end(), questions.begin(), questions.end());
        questions_waiting_.store(!questions_.empty(), std::memory_order_release);
    }
    /// For the control thread: the latest link-layer address announced for `owner` since `forget`,
    /// if any.
    [[nodiscard]] std::optional<net::MacAddress> mac_of(const net::Address& owner) {
        const std::lock_guard lock{mutex_};
        const auto known = std::find_if(facts_.begin(), facts_.end(), [&](const NeighborFact& fact) { return fact.owner == owner; });
        return known == facts_.end() ? std::nullopt : std::optional{known->mac};
    }
    void forget() {
        const std::lock_guard lock{mutex_};
        facts_.clear();
    }
    /// For the control thread: since the port was opened, and at this moment.
    [[nodiscard]] NeighborDrops drops() const noexcept {
        NeighborDrops drops;
        for (const NeighborMailbox* const mailbox : mailboxes_) {
            drops[NeighborDrop::neighbour_overflow] += mailbox->overflow();
            drops[NeighborDrop::neighbour_unanswered] += port_is_full_.load(std::memory_order_relaxed) ? mailbox->size() : 0;
        }
        return drops;
    }
    [[nodiscard]] bool asking() const noexcept { return questions_waiting_.load(std::memory_order_acquire); }
    [[nodiscard]] const std::vector<frame::AnsweredHosts>& hosts() const noexcept { return hosts_; }

private:
    /// As many letters as a receiver takes frames from a queue in one poll.
    static constexpr unsigned letters_per_poll = frame::burst_frames_max, questions_per_poll = 16;
    static constexpr std::size_t facts_max = 16;

    /// Returns false if the message has to be read again, because its answer could not be sent.
    bool read(std::span<const std::byte> frame) noexcept {
        const NeighborMessage message = read_neighbor_message(frame);
        if (message.question && emulates(message.question->target)) {
            const bool answered = send(write_answer(link_of(message.question->target), *message.question), message.question->target.family);
            port_is_full_.store(!answered, std::memory_order_relaxed);
            if (!answered) {
                return false;
            }
        }
        if (message.fact && !emulates(message.fact->owner)) {
            const std::lock_guard lock{mutex_};  // the control thread holds it only briefly, and this is not the fast path
            const auto known =
                std::find_if(facts_.begin(), facts_.end(), [&](const NeighborFact& fact) { return fact.owner == message.fact->owner; });
            if (known != facts_.end()) {
                known->mac = message.fact->mac;
            } else if (facts_.size() < facts_max) {
                facts_.push_back(*message.fact);
            }
        }
        return true;
    }

    void ask() noexcept {
        const std::lock_guard lock{mutex_};
        for (unsigned i = 0; i < questions_per_poll && !questions_.empty(); ++i) {
            const Question& question = questions_.back();
            if (!send(write_question(link_of(question.source), question.target, question.source), question.target.family)) {
                return;  // no room now: try again in the next poll
            }
            questions_.pop_back();
        }
        questions_waiting_.store(!questions_.empty(), std::memory_order_release);
    }

    [[nodiscard]] bool emulates(const net::Address& address) const noexcept {
        return std::any_of(hosts_.begin(), hosts_.end(), [&](const frame::AnsweredHosts& hosts) { return hosts.contains(address); });
    }

    /// The link as the host with this address sees it.
    [[nodiscard]] NeighborLink link_of(const net::Address& host) const noexcept {
        NeighborLink link = link_;
        const auto set =
            std::find_if(hosts_.begin(), hosts_.end(), [&](const frame::AnsweredHosts& hosts) { return hosts.contains(host); });
        if (link_.host_macs && set != hosts_.end()) {
            link.own_mac = link_.host_macs->at(set->number_of(host));
        }
        return link;
    }

    bool send(const NeighborFrame& frame, net::Family family) noexcept {
        std::array<typename Queue::Buffer, 1> buffer;
        if (queue_.acquire(family == net::Family::ipv4 ? slots_.arp : slots_.discovery, buffer) != 1) {
            return false;
        }
        std::memcpy(Queue::bytes(buffer[0]), frame.data.data(), frame.bytes);
        if (queue_.send(buffer) != 1) {
            queue_.release(buffer);
            return false;
        }
        return true;
    }

    NeighborLink link_;
    std::vector<frame::AnsweredHosts> hosts_;
    Queue& queue_;
    std::vector<NeighborMailbox*> mailboxes_;
    Slots slots_;
    std::atomic<bool> questions_waiting_{false}, port_is_full_{false};
    std::mutex mutex_;
    std::vector<Question> questions_;  ///< guarded by mutex_
    std::vector<NeighborFact> facts_;  ///< guarded by mutex_
};

}  // namespace gatemark::loop
