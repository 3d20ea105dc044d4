#pragma once

#include "io/port_name.hpp"
#include "net/address.hpp"
#include "refdut/delay.hpp"
#include "refdut/impairment.hpp"
#include "refdut/nat_table.hpp"
#include "refdut/shaper.hpp"
#include "refdut/translate.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace gatemark::refdut {

/// One side and its port. Cannot be changed while the gateway runs, except addresses and peer.
struct SideSettings {
    io::PortName port{.kind = io::PortKind::null, .text = "", .argument = ""};
    unsigned mtu = 1500;          ///< bytes; longer packets are dropped
    unsigned ring_frames = 4096;  ///< of the port's receive and transmit ring
    std::optional<std::uint16_t> vlan_id;
    std::optional<net::Address> ipv4, ipv6;
    std::optional<net::MacAddress> mac;       ///< instead of the port's own
    std::optional<net::MacAddress> peer_mac;  ///< if given, nothing is learned
};

/// What happens to the frames of one direction.
struct DirectionSettings {
    ShaperSpec shaper;
    DelaySpec delay;
    bool keep_order = true;  ///< no frame overtakes another because its delay is shorter
    ImpairmentSpec impairments;
};

/// A whole configuration file. Immutable: a reload creates a new one.
struct Settings {
    std::uint64_t seed = 1;
    std::string control;                ///< path of the control socket; empty: none
    std::optional<unsigned> cpu;        ///< of the worker
    std::uint64_t held_frames = 16384;  ///< that one direction can hold (waiting or delayed); their buffers are allocated at the start
    bool held_frames_given = false;     ///< by the file; else chosen to fit the queues
    bool huge_pages_allowed = true;
    std::array<SideSettings, 2> sides;  ///< by Side
    TranslationConfig translation;
    NatLimits table;
    std::array<DirectionSettings, 2> directions;  ///< forward (left to right), reverse
    std::string translation_key;                  ///< equal texts mean the same translation: the connections of the table stay valid
};

}  // namespace gatemark::refdut
