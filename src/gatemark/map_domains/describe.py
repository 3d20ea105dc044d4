"""MAP domains in words and numbers, for who checks a campaign before it is run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from gatemark.facts import Facts, Order, RuleFacts
from gatemark.map_domains.domain import AddressKind, Edge, MapDomain
from gatemark.map_domains.edges import used_numbers
from gatemark.map_domains.nesting import nested
from gatemark.map_domains.peers import PeerEdges
from gatemark.map_domains.port_set import PortSet
from gatemark.map_domains.spread import Spread


class EdgeDescription(Facts):
    """One customer edge."""

    ea: int
    address: str
    """Its MAP address."""
    ipv4: str
    """Its IPv4 address, or prefix."""
    psid: int
    ports: str


class RuleDescription(RuleFacts):
    """A rule with what follows from it; the letters are those of RFC 7597."""

    kind: AddressKind
    suffix_bits: int
    """p; `ea_bits` is o, `psid_offset` a and `psid_bits` k."""
    ea_psid_bits: int
    """q."""
    contiguous_bits: int
    """m."""

    @property
    def prefixes_line(self) -> str:
        """Return the prefixes of the rule."""
        return f"{self.ipv6}, {self.ipv4}" + (f", default mapping rule {self.dmr}" if self.dmr else "")

    @property
    def bits_line(self) -> str:
        """Return what the EA bits and the bits of a port are."""
        port = f"offset {self.psid_offset} (a), PSID {self.psid_bits} (k), {self.contiguous_bits} behind it (m)"
        numbered = (
            f"bits of a softwire's number {self.ea_bits}" if self.in_identifier else f"EA bits {self.ea_bits} (o)"
        )
        return (
            f"{numbered}: IPv4 suffix {self.suffix_bits} (p), PSID {self.ea_psid_bits} (q);"
            f" bits of a port: {port if self.psid_bits else 'no PSID'}"
        )


class DomainDescription(RuleDescription):
    """One domain with all that follows from its rule."""

    sharing_ratio: int
    ports_per_edge: int
    edges: int
    """Customer edges that the Tester emulates."""
    edges_of_rule: int
    """Customer edges that the rule has, without those that are left out."""
    edges_of_longer_rules: int
    """Those that are left out because a gateway takes them for customer edges of another domain."""
    lowest: EdgeDescription | None
    """With the lowest EA value that is emulated, or may be in pseudorandom order; None if the domain has none."""
    highest: EdgeDescription | None

    def lines(self) -> Iterator[str]:
        """Yield the description as lines of text."""
        article = "an" if self.kind == "IPv4 prefix" else "a"
        yield f"{self.prefixes_line}: each customer edge has {article} {self.kind}"
        yield self.bits_line
        sharing = f"{self.sharing_ratio} to an address" if self.sharing_ratio > 1 else "no address shared"
        yield f"{self.edges} of {self.edges_of_rule} customer edges, {sharing}, {self.ports_per_edge} ports each"
        if self.edges_of_longer_rules:
            yield f"{self.edges_of_longer_rules} more are left out: longer rules of other domains hold their addresses"
        if self.kind == "IPv4 prefix":
            why = (
                "the MAP address of a customer edge embeds its prefix, so the others are in the same tunnel (RFC 7597"
                " section 6)"
                if self.dmr is None
                else "the others have no MAP address of their own (RFC 7599 section 6)"
            )
            yield f"only the first address of each prefix is measured: {why}"
        for name, edge in (("lowest", self.lowest), ("highest", self.highest)):
            if edge is not None:
                psid = f" PSID {edge.psid}" if self.psid_bits else ""
                number = "softwire" if self.in_identifier else "EA"
                yield f"{name} {number} {edge.ea}: {edge.address}, {edge.ipv4}{psid}, ports {edge.ports}"


def rule_facts(domain: MapDomain) -> RuleFacts:
    """Return the rule of a domain."""
    return RuleFacts(
        ipv6=str(domain.rule_ipv6),
        ipv4=str(domain.rule_ipv4),
        ea_bits=domain.ea_bits,
        psid_offset=domain.psid_offset,
        psid_bits=domain.psid_length,
        dmr=None if domain.dmr is None else str(domain.dmr),
        in_identifier=domain.in_identifier,
    )


def describe_domains(domains: Sequence[MapDomain], edges: int, order: Order) -> tuple[DomainDescription, ...]:
    """Describe each domain with its share of `edges` customer edges."""
    counts = Spread(tuple(domain.weight for domain in domains)).counts(edges)
    return tuple(_described(domain, count, order) for domain, count in zip(nested(domains), counts, strict=True))


class GatewayEdgeDescription(RuleDescription):
    """The customer edge that the gateway is, with all that follows from its rule."""

    end_user_prefix: str
    edge: EdgeDescription
    port_count: int
    """Ports that its connections may have: those of its set, but never port 0."""
    peers: EdgeDescription | None
    """One of the other customer edges that are the hosts outside; None where those are behind the border relay."""

    def lines(self) -> Iterator[str]:
        """Yield the description as lines of text."""
        yield f"{self.prefixes_line}: the gateway has a {self.kind}"
        yield self.bits_line
        psid = f" PSID {self.edge.psid}" if self.psid_bits else ""
        yield f"{self.end_user_prefix}, EA {self.edge.ea}: {self.edge.address}, {self.edge.ipv4}{psid}"
        yield f"{self.port_count} ports: {self.edge.ports}"
        yield (
            f"{self.port_count} source endpoints at most with endpoint-independent mapping,"
            f" {self.port_count} connections to each destination with endpoint-dependent mapping"
        )
        if self.peers is not None:
            psid = f" of PSID {self.peers.psid}" if self.psid_bits else ""
            yield f"hosts outside are other customer edges{psid}, such as {self.peers.ipv4}: {self.peers.address}"


def describe_gateway(edge: Edge, port_count: int, peers: PeerEdges | None = None) -> GatewayEdgeDescription:
    """Describe the customer edge that the gateway is, and the others that it reaches directly."""
    domain = edge.domain
    return GatewayEdgeDescription(
        **_described_rule(domain),
        end_user_prefix=str(edge.delegated),
        edge=_described_edge(edge),
        port_count=port_count,
        peers=None if peers is None else _described_edge(next(iter(peers))),
    )


def _described_rule(domain: MapDomain) -> dict[str, Any]:
    """Return the fields of a `RuleDescription`."""
    return {
        **dict(rule_facts(domain)),
        "kind": domain.kind,
        "suffix_bits": domain.suffix_bits,
        "ea_psid_bits": domain.ea_psid_bits,
        "contiguous_bits": domain.contiguous_bits,
    }


def _described(domain: MapDomain, count: int, order: Order) -> DomainDescription:
    used = used_numbers(domain, count, order)
    return DomainDescription(
        **_described_rule(domain),
        sharing_ratio=domain.sharing_ratio,
        ports_per_edge=domain.ports_per_edge,
        edges=count,
        edges_of_rule=domain.edge_count,
        edges_of_longer_rules=replace(domain, taken=()).edge_count - domain.edge_count,
        lowest=_described_edge(domain.edge(used[0])) if count else None,
        highest=_described_edge(domain.edge(used[-1])) if count else None,
    )


def _described_edge(edge: Edge) -> EdgeDescription:
    is_prefix = edge.domain.kind == "IPv4 prefix"
    return EdgeDescription(
        ea=edge.ea,
        address=str(edge.address),
        ipv4=str(edge.ipv4_network if is_prefix else edge.ipv4),
        psid=edge.psid,
        ports=ports_text(edge.ports),
    )


def ports_text(ports: PortSet) -> str:
    """Write a port set: "1232-1235 .. 64720-64723 (63 ranges of 4)", or its only range."""
    size = 1 << ports.contiguous_bits
    firsts = [ports.port(0), ports.port(ports.count - size)]
    first, last = (str(low) if size == 1 else f"{low}-{low + size - 1}" for low in firsts)
    if ports.range_count == 1:
        return first
    return f"{first} .. {last} ({ports.range_count} {'single ports' if size == 1 else f'ranges of {size}'})"
