#include "loop/exchange.hpp"

#include "net/headers.hpp"
#include "trial/tester_parts.hpp"

#include <algorithm>

namespace gatemark::trial {

using namespace std::chrono_literals;

namespace {

using Sender = loop::FrameListSender<io::TransmitQueue>;
using Keeper = loop::FrameKeeper<io::ReceiveQueue>;

/// How often the control thread looks whether everything is sent.
constexpr auto cancel_look_interval = 5ms;
/// How often a worker without anything to do looks for what arrived: how exact its times are.
constexpr auto look_interval = 100us;
/// What a port may take to accept a frame before the exchange goes on without it.
constexpr auto patience = 1s;

/// A packet in a frame of this link, padded as Ethernet has it.
std::vector<std::byte> frame_of(const std::vector<std::byte>& packet, const frame::LinkAddresses& link) {
    const bool is_ipv6 = !packet.empty() && std::to_integer<unsigned>(packet[0]) >> 4 == 6;
    const std::size_t tag = link.vlan_id ? net::ethernet::vlan_tag_bytes : 0, header = net::ethernet::header_bytes + tag;
    std::vector<std::byte> frame(std::max(header + packet.size(), net::ethernet::frame_bytes_min - net::ethernet::fcs_bytes + tag));
    std::ranges::copy(link.destination, frame.begin() + net::ethernet::destination);
    std::ranges::copy(link.source, frame.begin() + net::ethernet::source);
    if (link.vlan_id) {
        store_big_endian(frame.data() + net::ethernet::type, net::ethernet::type_vlan);
        store_big_endian(frame.data() + net::ethernet::type + 2, *link.vlan_id);
    }
    store_big_endian(frame.data() + header - 2, is_ipv6 ? net::ethernet::type_ipv6 : net::ethernet::type_ipv4);
    std::ranges::copy(packet, frame.begin() + static_cast<std::ptrdiff_t>(header));
    return frame;
}

/// An exchange while it lasts. Its tasks are taken from the workers before they end.
class Exchange {
public:
    Exchange(TesterParts& parts, const ExchangeRequest& request) : parts_{parts}, request_{request} {
        const LinkPlan links = parts.links();
        for (const Side side : {Side::left, Side::right}) {
            const auto i = static_cast<std::size_t>(side);
            for (const auto& packet : request.packets[i]) {
                frames_[i].push_back(frame_of(packet, links.sides[i]));
            }
            QueuePair& first = parts.side(side).queues.front();
            const auto longest = std::ranges::max_element(frames_[i], {}, [](const auto& frame) { return frame.size(); });
            if (longest != frames_[i].end()) {
                first.pools[slot_foreground].set_template(std::vector<std::byte>(longest->size()));
            }
            senders_[i] = std::make_unique<Sender>(frames_[i], *first.transmit, slot_foreground, parts.scale.ticks(request.interval));
            for (QueuePair& queue : parts.side(side).queues) {
                keepers_[i].push_back(std::make_unique<Keeper>(*queue.receive, *queue.mailbox));
            }
        }
        make_lists();
    }
    ~Exchange() { parts_.hand_out(parts_.idle_lists); }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    ExchangeReport execute(Watcher& watcher) {
        using Clock = std::chrono::steady_clock;
        const pace::Ticks begin = parts_.clock.now();
        parts_.hand_out(lists_);
        ExchangeReport report;
        const std::size_t longest = std::max(frames_[0].size(), frames_[1].size());
        const auto give_up = Clock::now() + request_.interval * longest + patience;
        while (!report.cancelled && !all_sent() && Clock::now() < give_up) {
            report.cancelled = !watcher.wait(cancel_look_interval);
        }
        const auto end = Clock::now() + request_.wait;
        for (auto now = Clock::now(); !report.cancelled && now < end; now = Clock::now()) {
            report.cancelled = !watcher.wait(end - now);
        }
        parts_.hand_out(parts_.idle_lists);
        fill(report, begin);
        return report;
    }

private:
    void make_lists() {
        for (const WorkerLayout& worker : parts_.layout.workers) {
            TaskList& list = lists_.emplace_back();  // idle: a worker that never sleeps keeps a gateway on its CPU from answering
            list.pause = look_interval;
            for (const TaskPlace& place : worker.tasks) {
                const auto i = static_cast<std::size_t>(place.side);
                if (place.kind == TaskKind::receive) {
                    list.tasks.push_back(keepers_[i][place.queue].get());
                } else if (place.queue == 0) {
                    list.tasks.push_back(parts_.side(place.side).responder.get());
                    list.tasks.push_back(senders_[i].get());
                }
            }
        }
    }
    [[nodiscard]] bool all_sent() const { return senders_[0]->sent() == frames_[0].size() && senders_[1]->sent() == frames_[1].size(); }
    void fill(ExchangeReport& report, pace::Ticks begin) const {
        for (const Side side : {Side::left, Side::right}) {
            const auto i = static_cast<std::size_t>(side);
            report.sent[i] = senders_[i]->sent();
            for (const auto& keeper : keepers_[i]) {
                report.not_kept += keeper->not_kept();
                for (const Keeper::Kept& kept : keeper->kept()) {
                    const auto bytes = keeper->bytes_of(kept);
                    const pace::Ticks since{kept.arrived > begin ? kept.arrived.value - begin.value : 0};
                    report.arrived.push_back({.side = side, .at = parts_.scale.time(since), .bytes = {bytes.begin(), bytes.end()}});
                }
            }
        }
        std::ranges::stable_sort(report.arrived, {}, &ExchangeReport::Arrived::at);
    }

    TesterParts& parts_;
    const ExchangeRequest& request_;
    std::array<std::vector<std::vector<std::byte>>, 2> frames_;  ///< by Side
    std::array<std::unique_ptr<Sender>, 2> senders_;
    std::array<std::vector<std::unique_ptr<Keeper>>, 2> keepers_;  ///< by Side, then queue
    std::vector<TaskList> lists_;
};

}  // namespace

std::variant<ExchangeReport, Errors> Tester::exchange(const ExchangeRequest& request, Watcher& watcher) {
    Errors errors;
    for (const Side side : {Side::left, Side::right}) {
        const auto& packets = request.packets[static_cast<std::size_t>(side)];
        const unsigned mtu = parts_->side(side).port.facts().mtu;
        for (std::size_t i = 0; i < packets.size(); ++i) {
            if (packets[i].size() > mtu) {
                errors.push_back(
                    {"a packet of " + std::to_string(packets[i].size()) + " octets is larger than the MTU of " + std::to_string(mtu),
                     std::string{name_of(side)} + "[" + std::to_string(i) + "]", "send a smaller one, or raise `mtu` of the port"});
            }
        }
    }
    if (!errors.empty()) {
        return errors;
    }
    Exchange exchange{*parts_, request};
    return exchange.execute(watcher);
}

}  // namespace gatemark::trial
