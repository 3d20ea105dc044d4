"""What is measured: the cases of gatemark-bench by group, their partners of DPDK, the bars that they are to reach."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Bar:
    """At most so many times the partner's cycles, or at most so many seconds for so many frames."""

    ratio: float | None = None
    seconds: float | None = None
    frames: int = 1
    """Of one run of the case, or whatever else its cycles are counted for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partner:
    """A way to run dpdk-testpmd: what it forwards, between which devices."""

    mode: str
    devices: tuple[str, ...]
    start: str = "start"
    counts: str = "Tx"


PARTNERS = {
    "txonly": Partner(mode="txonly", devices=("net_null0,no-rx=1",)),
    "rxonly": Partner(mode="rxonly", devices=("net_null0",), counts="Rx"),
    "io": Partner(mode="io", devices=("net_null0", "net_null1")),
    "io/ring": Partner(mode="io", devices=("net_ring0", "net_ring1"), start="start tx_first 8"),
    "flowgen": Partner(mode="flowgen", devices=("net_ring0",)),
}
"""A null port hands out and frees buffers, untouched; `io` moves them from one port to another. A net_ring is joined to
itself: `io` passes 512 frames round and touches none; `flowgen` writes frames, sends them, gets them back, frees them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cases that are run in one process, between two runs of their partner."""

    name: str
    about: str
    cases: tuple[str, ...]
    partners: tuple[str, ...] = ()
    """The first one is what the cases are compared with; others are shown beside it."""
    bars: dict[str, Bar] = field(default_factory=dict)


TUNNELS = ("map_e_up", "map_e_down", "lwaftr_up", "lwaftr_down", "sixrd_up", "sixrd_down")
SENDER_OF_TUNNELS, RECEIVER_OF_TUNNELS = Bar(ratio=1.3), Bar(ratio=1.8)

GROUPS = (
    Group(
        name="frame",
        about="a frame written, a frame verified, a whole sender; in cache, no port",
        cases=(
            "write_frame/ipv4_fixed", "write_frame/ipv4_ports", "write_frame/ipv4_hosts", "write_frame/ipv4_both",
            "write_frame/ipv6_both", "verify_frame/ipv4", "verify_frame/ipv6", "verify_frame/ipv4_1518",
            "send_to_memory/ipv4_both", "send_to_memory/ipv6_both",
        ),
    ),
    Group(
        name="enumerate",
        about="which connection a frame belongs to; set_up: all that is done before the first one",
        cases=(
            "set_up/1600000000", "set_up_edges/1000", "set_up_edges/16777216",
            "set_up_edges/1099511627776", "permute/4000000", "permute/1600000000", "permute_burst/4000000",
            "permute_burst/1600000000", "enumerate_tuples/increasing/400000000",
            "enumerate_tuples/pseudorandom/400000000", "enumerate_tuples/pseudorandom/1600000000",
        ),
        bars={
            "set_up/1600000000": Bar(seconds=0.001),
            "set_up_edges/16777216": Bar(seconds=0.001),
            "set_up_edges/1099511627776": Bar(seconds=0.001),
        },
    ),
    Group(
        name="state",
        about="the state table at random places; a Responder's frame from it, without its sender; touch_table: an entry"
        " of a table of 1.6 GB that gets its memory, by one thread and by two",
        cases=(
            "write_table/4000000", "write_table/40000000", "write_reply/4000", "write_reply/40000000",
            "touch_table/1", "touch_table/2",
        ),
    ),
    Group(
        name="record",
        about="what is kept of each frame; make_delay is part of four cases; find_losses, explain_losses: afterwards",
        cases=(
            "make_delay", "mark_bitmap/real_time/threads:1", "mark_bitmap/real_time/threads:2", "add_delay",
            "put_delay_variation/real_time/threads:1", "put_delay_variation/real_time/threads:2", "find_tag",
            "add_lateness", "find_losses/percent:0/in_a_row:1", "find_losses/percent:1/in_a_row:1",
            "find_losses/percent:50/in_a_row:1", "find_losses/percent:50/in_a_row:8",
            "find_losses/percent:100/in_a_row:1",
            "explain_losses/per_1000:1", "explain_losses/per_1000:63", "explain_losses/per_1000:500",
            "find_loss_ages/connections:10000", "find_loss_ages/connections:10000000",
        ),
        bars={"explain_losses/per_1000:63": Bar(seconds=0.2, frames=16_000_000)},
    ),
    Group(
        name="receive",
        about="a whole receiver on frames in buffers that no cache holds; txonly is a measure of the machine",
        partners=("txonly",),
        cases=(
            "receive_in_memory/ipv4", "receive_in_memory/ipv6", "receive_in_memory/ipv4_512",
            "receive_in_memory/ipv4_1518", "receive_in_memory/ipv6_1518", "receive_in_memory/ipv4_tags_and_variation",
            "receive_in_cache/ipv4", "receive_in_cache/ipv6", "receive_connections/phase_1/40000000",
            "receive_connections/phase_1/200000000", "receive_connections/phase_2/40000000",
            "receive_connections/phase_2/200000000", "receive_edges/map_t_6to4", "receive_edges/map_t_4to6",
            "receive_edges/map_e_up", "receive_edges/map_e_down", "receive_edges/lwaftr_up",
            "receive_edges/lwaftr_down", "receive_edges/sixrd_up", "receive_edges/sixrd_down",
            "receive_connections_of_aftr/phase_1/40000000",
        ),
        bars={
            "receive_in_memory/ipv4": Bar(ratio=1.1), "receive_in_memory/ipv6": Bar(ratio=1.1),
            "receive_connections/phase_1/200000000": Bar(ratio=1.7),
            "receive_edges/map_t_6to4": Bar(ratio=2.6), "receive_edges/map_t_4to6": Bar(ratio=2.6),
            "receive_connections_of_aftr/phase_1/40000000": RECEIVER_OF_TUNNELS,
            **{f"receive_edges/{edges}": RECEIVER_OF_TUNNELS for edges in TUNNELS},
        },
    ),
    Group(
        name="send on null",
        about="stateless senders, by what varies: ports, hosts, both",
        partners=("txonly",),
        cases=(
            "send_on_null/ipv4_fixed", "send_on_null/ipv4_ports", "send_on_null/ipv4_hosts", "send_on_null/ipv4_both",
            "send_on_null/ipv6_fixed", "send_on_null/ipv6_ports", "send_on_null/ipv6_hosts", "send_on_null/ipv6_both",
            "send_on_null/ipv4_both_1518", "send_one_by_one_on_null/ipv4", "send_one_by_one_on_null/ipv6",
            "send_edges_on_null/map_t_6to4", "send_edges_on_null/map_t_4to6", "send_edges_on_null/map_e_up",
            "send_edges_on_null/map_e_down", "send_edges_on_null/lwaftr_up", "send_edges_on_null/lwaftr_down",
            "send_edges_on_null/sixrd_up", "send_edges_on_null/sixrd_down",
        ),
        bars={
            "send_on_null/ipv4_both": Bar(ratio=1.2), "send_on_null/ipv6_both": Bar(ratio=1.2),
            "send_edges_on_null/map_t_6to4": Bar(ratio=2.0), "send_edges_on_null/map_t_4to6": Bar(ratio=2.0),
            **{f"send_edges_on_null/{edges}": SENDER_OF_TUNNELS for edges in TUNNELS},
        },
    ),
    Group(
        name="initiate on null",
        about="the Initiator: four-tuples enumerated in test phase 1, drawn in test phase 2",
        partners=("txonly",),
        cases=(
            "initiate_on_null/phase_1/4000000", "initiate_on_null/phase_1/40000000",
            "initiate_on_null/phase_1/400000000", "initiate_on_null/phase_2/400000000",
            "initiate_through_aftr_on_null/phase_1/400000000",
        ),
        bars={
            "initiate_on_null/phase_1/400000000": Bar(ratio=1.35),
            "initiate_through_aftr_on_null/phase_1/400000000": SENDER_OF_TUNNELS,
        },
    ),
    Group(
        name="respond on null",
        about="the Responder, by the order in which it reads its state table, and its entries",
        partners=("txonly",),
        cases=(
            "respond_on_null/fixed/4000000", "respond_on_null/increasing/4000", "respond_on_null/increasing/4000000",
            "respond_on_null/increasing/40000000", "respond_on_null/decreasing/4000",
            "respond_on_null/decreasing/4000000", "respond_on_null/decreasing/40000000",
            "respond_on_null/pseudorandom/4000", "respond_on_null/pseudorandom/4000000",
            "respond_on_null/pseudorandom/40000000", "respond_on_null/pseudorandom/200000000",
            "respond_on_null/ipv6_pseudorandom/4000000", "respond_on_null/ipv6_pseudorandom/200000000",
            "respond_through_aftr_on_null/pseudorandom/4000000",
        ),
        bars={
            "respond_on_null/pseudorandom/4000000": Bar(ratio=1.5),
            "respond_on_null/pseudorandom/200000000": Bar(ratio=1.8),
            "respond_through_aftr_on_null/pseudorandom/4000000": Bar(ratio=1.65),
        },
    ),
    Group(
        name="receive on null",
        about="a whole receiver and its port",
        partners=("rxonly",),
        cases=("receive_on_null/ipv4", "receive_on_null/ipv6"),
    ),
    Group(
        name="both on null",
        about="one sender and one receiver in turn: sent and received is one frame",
        partners=("io",),
        cases=("send_and_receive_on_null",),
    ),
    Group(
        name="ring",
        about="whole trials through rings on one thread, every frame written, sent, received, verified, recorded",
        partners=("flowgen", "io/ring"),
        cases=("one_way_on_ring/ipv4", "duplex_on_ring/ipv4", "duplex_on_ring/ipv6"),
        bars={"duplex_on_ring/ipv4": Bar(ratio=1.7), "duplex_on_ring/ipv6": Bar(ratio=1.7)},
    ),
)  # fmt: skip

BY_HAND = {"proof_of_bijection/iterations:1/repeats:1"}
"""Cases of the program that are no part of `make bench`."""
