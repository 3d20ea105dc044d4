#include "record/loss_table.hpp"

#include "base/random.hpp"
#include "frame/edge_address.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <numeric>

namespace gatemark::record {

namespace {

using Count = LossTable::Count;

/// A count while frames are added: half as large, since it stays below `examined_max`.
struct Tally {
    std::uint32_t lost = 0, arrived = 0;

    void add(bool is_lost) { ++(is_lost ? lost : arrived); }
    Tally& operator+=(const Tally& other) {
        lost += other.lost;
        arrived += other.arrived;
        return *this;
    }
    [[nodiscard]] Count count() const { return {lost, arrived}; }
};

bool is_dead(const Count& count) { return count.lost != 0 && count.arrived == 0; }

/// What a field says of its values, each with its count.
class FieldMaker {
public:
    explicit FieldMaker(LossField field) { made_.field = field; }

    void add(const Count& count) {
        made_.count.lost += count.lost;
        made_.count.arrived += count.arrived;
        ++made_.values;
        made_.losing += count.lost != 0 ? 1 : 0;
        if (is_dead(count)) {
            ++made_.dead;
            made_.lost_in_dead += count.lost;
        }
    }
    [[nodiscard]] LossTable::Field& made() { return made_; }

private:
    LossTable::Field made_;
};

/// The positions of the counts with most losses, heaviest first.
template <class CountOf>
std::vector<std::size_t> heaviest_of(std::size_t size, CountOf&& count_of) {
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < size; ++i) {
        if (count_of(i).lost != 0) {
            positions.push_back(i);
        }
    }
    const auto kept = static_cast<std::ptrdiff_t>(std::min(positions.size(), LossTable::heaviest_kept));
    std::partial_sort(positions.begin(), positions.begin() + kept, positions.end(), [&](std::size_t a, std::size_t b) {
        const Count first = count_of(a), second = count_of(b);
        return std::tuple{second.lost, first.arrived, a} < std::tuple{first.lost, second.arrived, b};
    });
    positions.resize(static_cast<std::size_t>(kept));
    return positions;
}

/// A field whose values are 16-bit numbers: each has its counter.
class NumberField {
public:
    explicit NumberField(LossField field) : field_{field}, tallies_(std::size_t{1} << 16U) {}

    void add(std::uint16_t value, bool lost) { tallies_[value].add(lost); }

    template <class NameOf>
    [[nodiscard]] LossTable::Field table(NameOf&& name_of) const {
        FieldMaker maker{field_};
        for (const Tally& tally : tallies_) {
            if (tally.lost + tally.arrived != 0) {
                maker.add(tally.count());
            }
        }
        LossTable::Field& made = maker.made();
        for (const std::size_t value : heaviest_of(tallies_.size(), [&](std::size_t i) { return tallies_[i].count(); })) {
            made.heaviest.push_back({name_of(static_cast<std::uint16_t>(value)), tallies_[value].count()});
        }
        add_ranges(made, name_of);
        add_bits(made);
        return std::move(made);
    }

private:
    struct Span {
        std::size_t first, last;
        std::uint64_t values, lost;
    };

    template <class NameOf>
    void add_ranges(LossTable::Field& made, NameOf&& name_of) const {
        std::vector<Span> spans;
        bool goes_on = false;
        for (std::size_t value = 0; value < tallies_.size(); ++value) {
            const Count count = tallies_[value].count();
            if (is_dead(count)) {
                if (!goes_on) {
                    spans.push_back({value, value, 0, 0});
                }
                spans.back().last = value;
                ++spans.back().values;
                spans.back().lost += count.lost;
            }
            goes_on = count.arrived == 0 && (goes_on || count.lost != 0);
        }
        std::ranges::stable_sort(spans, std::ranges::greater{}, &Span::lost);
        spans.resize(std::min(spans.size(), LossTable::ranges_kept));
        std::ranges::sort(spans, std::ranges::less{}, &Span::first);
        for (const Span& span : spans) {
            made.ranges.push_back(
                {name_of(static_cast<std::uint16_t>(span.first)), name_of(static_cast<std::uint16_t>(span.last)), span.values, span.lost});
        }
    }

    /// Counts the values that have a bit, the highest one first: they are the upper half, which is
    /// added to the lower half before the next bit.
    void add_bits(LossTable::Field& made) const {
        std::vector<Tally> folded = tallies_;
        made.bits.resize(16);
        for (std::size_t bit = made.bits.size(); bit-- > 0;) {
            const std::size_t half = std::size_t{1} << bit;
            Tally with;
            for (std::size_t low = 0; low < half; ++low) {
                with += folded[half + low];
                folded[low] += folded[half + low];
            }
            made.bits[bit] = with.count();
        }
    }

    LossField field_;
    std::vector<Tally> tallies_;
};

/// A field with any number of values: those with the smallest hashes are kept, each with all its
/// frames. A value is named by one of its frames.
class HashedField {
public:
    explicit HashedField(LossField field) : field_{field}, slots_(slot_count) {}

    /// `hash` is that of the value; a hash of 0 counts as 1.
    void add(std::uint64_t hash, std::uint64_t number_in_class, bool lost) {
        hash += hash == 0 ? 1 : 0;
        if (hash > hash_max_) {
            return;
        }
        Slot& slot = slot_of(hash);
        if (slot.hash == 0) {
            slot = {.hash = hash, .number_and_first = number_in_class << 1U | (lost ? 1U : 0U), .tally = {}};
            ++size_;
        }
        slot.tally.add(lost);
        if (size_ > LossTable::values_tracked_max) {
            forget_half();
        }
    }

    template <class NameOf>
    [[nodiscard]] LossTable::Field table(bool is_complete, NameOf&& name_of) const {
        FieldMaker maker{field_};
        std::uint64_t firsts = 0;
        for (const Slot& slot : slots_) {
            if (slot.hash != 0) {
                maker.add(slot.tally.count());
                firsts += slot.number_and_first & 1U;
            }
        }
        LossTable::Field& made = maker.made();
        if (is_complete && hash_max_ == std::numeric_limits<std::uint64_t>::max()) {
            made.firsts = firsts;
        }
        for (const std::size_t i : heaviest_of(slots_.size(), [&](std::size_t at) { return slots_[at].tally.count(); })) {
            made.heaviest.push_back({name_of(slots_[i].number_and_first >> 1U), slots_[i].tally.count()});
        }
        return std::move(made);
    }

private:
    struct Slot {
        std::uint64_t hash = 0;              ///< 0: empty
        std::uint64_t number_and_first = 0;  ///< the number in the class of its first frame, above a bit: was that one lost?
        Tally tally;
    };
    static constexpr std::size_t slot_count = 2 * LossTable::values_tracked_max;

    /// The slot of this hash, or the empty one that it may take.
    [[nodiscard]] Slot& slot_of(std::uint64_t hash) {
        std::size_t at = mix_bits(hash) % slot_count;
        while (slots_[at].hash != 0 && slots_[at].hash != hash) {
            at = (at + 1) % slot_count;
        }
        return slots_[at];
    }

    void forget_half() {
        hash_max_ /= 2;
        std::vector<Slot> before(slot_count);
        before.swap(slots_);
        size_ = 0;
        for (const Slot& slot : before) {
            if (slot.hash != 0 && slot.hash <= hash_max_) {
                slot_of(slot.hash) = slot;
                ++size_;
            }
        }
    }

    LossField field_;
    std::uint64_t hash_max_ = std::numeric_limits<std::uint64_t>::max();
    std::size_t size_ = 0;
    std::vector<Slot> slots_;
};

/// Index residues of a sample of the frames.
class Residues {
public:
    Residues(const Count& examined) : sampled_{share(examined.lost), share(examined.arrived)} {}

    void add(std::uint64_t index, bool lost) {
        if ((mix_bits(index) >> 32U) > (lost ? sampled_.lost : sampled_.arrived)) {
            return;
        }
        for (std::size_t modulus = 2; modulus <= LossTable::modulus_max; ++modulus) {
            tallies_[modulus][static_cast<std::size_t>(index % modulus)].add(lost);
        }
    }

    /// The smallest modulus by whose residues nearly all losses are told from the other frames.
    [[nodiscard]] std::optional<LossTable::Field> table() const {
        for (std::size_t modulus = 2; modulus <= LossTable::modulus_max; ++modulus) {
            FieldMaker maker{LossField::index_residue};
            for (std::size_t residue = 0; residue < modulus; ++residue) {
                maker.add(tallies_[modulus][residue].count());
            }
            LossTable::Field& made = maker.made();
            if (made.lost_in_dead * 20 < made.count.lost * 19 || made.dead == modulus || made.count.lost == 0) {
                continue;
            }
            made.modulus = modulus;
            for (const std::size_t residue : heaviest_of(modulus, [&](std::size_t i) { return tallies_[modulus][i].count(); })) {
                made.heaviest.push_back({std::to_string(residue), tallies_[modulus][residue].count()});
            }
            return std::move(made);
        }
        return std::nullopt;
    }

private:
    static constexpr std::uint64_t sample_max = 1U << 14U;
    [[nodiscard]] static std::uint64_t share(std::uint64_t examined) {
        constexpr std::uint64_t all = 0xffff'ffff;
        return examined <= sample_max ? all : all * sample_max / examined;
    }

    Count sampled_;  ///< of 2^32
    std::array<std::array<Tally, LossTable::modulus_max>, LossTable::modulus_max + 1> tallies_{};
};

/// The table of one class while frames are added to it.
class TableMaker {
public:
    explicit TableMaker(const LossyClass& of)
        : stream_{*of.stream},
          lost_words_{share(of.lost)},
          arrived_words_{share(of.arrived)},
          is_complete_{of.lost <= LossTable::examined_max && of.arrived <= LossTable::examined_max},
          residues_{Count{std::min(of.lost, LossTable::examined_max), std::min(of.arrived, LossTable::examined_max)}} {
        const bool is_stateful = stream_.role() != frame::Role::stateless;
        if (is_stateful || stream_.edges() != nullptr) {
            numbers_.emplace(is_stateful ? LossField::connection : LossField::customer_edge);
        }
        if (stream_.marks_vary()) {
            traffic_classes_.emplace(LossField::traffic_class);
        }
        if (!is_stateful) {
            pairs_.emplace(LossField::host_pair);
            flows_.emplace(LossField::flow);
        }
    }

    /// Whether lost frames, or those that arrived, are looked at in the word of the bitmap with
    /// this hash.
    [[nodiscard]] bool looks_at(std::uint64_t word_hash, bool lost) const {
        return (word_hash >> 32U) <= (lost ? lost_words_ : arrived_words_);
    }

    void add(std::uint64_t index, std::uint64_t number, bool lost) {
        examined_.add(lost);
        const frame::FrameValues values = stream_.values(number);
        source_ports_.add(values.source_port, lost);
        destination_ports_.add(values.destination_port, lost);
        source_hosts_.add(is_edge(true) ? 0 : values.source_host, lost);  // edges are a field of their own
        destination_hosts_.add(is_edge(false) ? 0 : values.destination_host, lost);
        networks_.add(values.network, lost);
        if (traffic_classes_) {
            traffic_classes_->add(stream_.sent_mark(values).traffic_class, lost);
        }
        const std::uint64_t hosts =
            std::uint64_t{values.source_host} << 32U | std::uint64_t{values.destination_host} << 16U | values.network;
        const std::uint64_t ports = std::uint64_t{values.source_port} << 16U | values.destination_port;
        const std::uint64_t host_hash = mix_bits(hosts + mix_bits(values.connection));
        if (numbers_) {
            numbers_->add(mix_bits(values.connection), number, lost);
        }
        if (pairs_) {
            pairs_->add(host_hash, number, lost);
            flows_->add(mix_bits(host_hash ^ mix_bits(ports)), number, lost);
        }
        residues_.add(index, lost);
    }

    [[nodiscard]] LossTable table() const {
        LossTable made{.examined = examined_.count(), .fields = {}, .ages = {}};
        const auto number = [](std::uint16_t value) { return std::to_string(value); };
        const auto keep = [&](LossTable::Field field) {
            if (field.values > 1) {
                made.fields.push_back(std::move(field));
            }
        };
        keep(source_ports_.table(number));
        keep(destination_ports_.table(number));
        keep(source_hosts_.table([&](std::uint16_t value) { return host_of(true, value, 0); }));
        keep(destination_hosts_.table([&](std::uint16_t value) { return host_of(false, value, 0); }));
        keep(networks_.table(
            [&](std::uint16_t value) { return to_text(stream_.destination_hosts().host(0, static_cast<std::uint8_t>(value))); }));
        if (traffic_classes_) {
            keep(traffic_classes_->table(number));
        }
        if (numbers_) {
            keep(numbers_->table(is_complete_, [&](std::uint64_t j) {
                const frame::FrameValues values = stream_.values(j);
                return stream_.edges() != nullptr ? edge_of(values) : std::to_string(values.connection);
            }));
        }
        if (pairs_) {
            keep(pairs_->table(is_complete_, [&](std::uint64_t j) { return hosts_of(j); }));
            keep(flows_->table(is_complete_, [&](std::uint64_t j) { return flow_of(j); }));
        }
        if (auto residues = residues_.table()) {
            made.fields.push_back(*std::move(residues));
        }
        return made;
    }

private:
    /// The share of the words that are looked at, of 2^32.
    [[nodiscard]] static std::uint64_t share(std::uint64_t frames) {
        constexpr std::uint64_t all = 0xffff'ffff;
        return frames <= LossTable::examined_max
                   ? all
                   : static_cast<std::uint64_t>(static_cast<double>(all) * static_cast<double>(LossTable::examined_max) /
                                                static_cast<double>(frames));
    }
    [[nodiscard]] bool is_edge(bool source) const { return stream_.edges() != nullptr && source == stream_.comes_from_edges(); }
    /// The MAP address of an edge.
    [[nodiscard]] std::string edge_of(const frame::FrameValues& values) const {
        net::Address address{.family = net::Family::ipv6, .bytes = {}};
        frame::write_map_address(address.bytes.data(), stream_.edges()->edges().address_of(values.edge()));
        return to_text(address);
    }
    [[nodiscard]] std::string end_of(const frame::FrameValues& values, bool source) const {
        if (is_edge(source)) {
            return "customer edge " + edge_of(values);
        }
        return source ? host_of(true, values.source_host, 0) : host_of(false, values.destination_host, values.network);
    }
    [[nodiscard]] std::string host_of(bool source, std::uint16_t value, std::uint8_t network) const {
        if (stream_.subscriber_hosts() != nullptr && source == (stream_.role() == frame::Role::initiator)) {
            return stream_.subscriber_hosts()->name_of(value);
        }
        return to_text(source ? stream_.source_hosts().host(value, 0) : stream_.destination_hosts().host(value, network));
    }
    [[nodiscard]] std::string hosts_of(std::uint64_t number) const {
        const frame::FrameValues values = stream_.values(number);
        return end_of(values, true) + " to " + end_of(values, false);
    }
    [[nodiscard]] std::string flow_of(std::uint64_t number) const {
        const frame::FrameValues values = stream_.values(number);
        return end_of(values, true) + " port " + std::to_string(values.source_port) + " to " + end_of(values, false) + " port " +
               std::to_string(values.destination_port);
    }

    const frame::Stream& stream_;
    std::uint64_t lost_words_, arrived_words_;
    bool is_complete_;
    Tally examined_;
    NumberField source_ports_{LossField::source_port}, destination_ports_{LossField::destination_port};
    NumberField source_hosts_{LossField::source_host}, destination_hosts_{LossField::destination_host};
    NumberField networks_{LossField::destination_network};
    std::optional<NumberField> traffic_classes_;  ///< absent where all have one
    std::optional<HashedField> numbers_;          ///< connections of a stateful gateway, or customer edges
    std::optional<HashedField> pairs_, flows_;    ///< absent where a connection stands for them
    Residues residues_;
};

/// Adds the frames of a direction to the tables of its classes.
class Examiner {
public:
    Examiner(const pace::Mix& mix, std::span<const std::uint64_t> offered_end, const std::array<LossyClass, 2>& classes)
        : mix_{mix}, offered_end_{offered_end} {
        for (std::size_t k = 0; k < classes.size(); ++k) {
            if (classes[k].stream != nullptr && classes[k].lost != 0) {
                makers_[k].emplace(classes[k]);
            }
        }
    }

    [[nodiscard]] bool has_work() const { return makers_[0].has_value() || makers_[1].has_value(); }

    /// Takes those of 64 frames from `first` on that are looked at; `arrived` says which arrived.
    void take(std::uint64_t first, std::uint64_t arrived, std::uint64_t end) {
        const std::uint64_t hash = mix_bits(first + 1);
        const std::uint64_t frames =
            end - first >= ArrivalBitmap::word_frames ? ~std::uint64_t{0} : (std::uint64_t{1} << (end - first)) - 1;
        std::uint64_t looked_at = 0;
        for (const auto& maker : makers_) {
            if (maker) {
                looked_at |= (maker->looks_at(hash, true) ? ~arrived : 0) | (maker->looks_at(hash, false) ? arrived : 0);
            }
        }
        for (looked_at &= frames; looked_at != 0; looked_at &= looked_at - 1) {
            const auto bit = static_cast<unsigned>(std::countr_zero(looked_at));
            const std::uint64_t index = first + bit;
            const bool lost = (arrived >> bit & 1U) == 0;
            if (lost && index >= offered_end_[static_cast<std::size_t>(index % offered_end_.size())]) {
                continue;
            }
            const auto place = mix_.place_of(index);
            auto& maker = makers_[place.foreground ? 0 : 1];
            if (maker && maker->looks_at(hash, lost)) {
                maker->add(index, place.number_in_class, lost);
            }
        }
    }

    [[nodiscard]] std::array<std::optional<LossTable>, 2> tables() const {
        std::array<std::optional<LossTable>, 2> tables;
        for (std::size_t k = 0; k < tables.size(); ++k) {
            if (makers_[k]) {
                tables[k] = makers_[k]->table();
            }
        }
        return tables;
    }

private:
    const pace::Mix& mix_;
    std::span<const std::uint64_t> offered_end_;
    std::array<std::optional<TableMaker>, 2> makers_;
};

}  // namespace

std::array<std::optional<LossTable>, 2> tabulate_losses(const ArrivalBitmap& arrivals, const pace::Mix& mix,
                                                        std::span<const std::uint64_t> offered_end,
                                                        const std::array<LossyClass, 2>& classes) {
    try {
        Examiner examiner{mix, offered_end, classes};
        if (!examiner.has_work()) {
            return {};
        }
        const std::uint64_t end = std::min(arrivals.frame_count(), *std::ranges::max_element(offered_end));
        for (std::uint64_t first = 0; first < end;) {
            for (const std::uint64_t word : arrivals.words_of(first / ArrivalBitmap::block_frames)) {
                if (first < end) {
                    examiner.take(first, word, end);
                }
                first += ArrivalBitmap::word_frames;
            }
        }
        return examiner.tables();
    } catch (const std::bad_alloc&) {
        return {};  // the counts stand without an explanation
    }
}

}  // namespace gatemark::record
