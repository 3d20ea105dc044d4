"""MAP domains in a campaign file: `[map]`, `[[map.domains]]` (RFC 7597, RFC 7599) and `[[map.softwires]]` (RFC 7596).

Limits of single values are told together with what the values contradict, so the models leave them to the checks in
`gatemark.config.map_check`.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt
from pydantic.config import JsonDict

from gatemark.config.only import EDGE, EDGES_OF_TESTER, MAP_EDGES, MAP_T, NO_ECHO, WITH_BINDINGS, WITH_MAP_RULES
from gatemark.config.tables import Table
from gatemark.config.types import AsList, Count, Ipv4Prefix, Ipv6Prefix
from gatemark.facts import EdgeChoice, Order, Variation
from gatemark.map_domains.domain import DEFAULT_PSID_OFFSET, Edge, MapDomain
from gatemark.map_domains.nesting import nested
from gatemark.map_domains.peers import PeerEdges
from gatemark.map_domains.port_set import PORT_BITS
from gatemark.map_domains.problems import DOMAINS_MAX, EA_BITS_MAX, PSID_OFFSET_MAX, domain_problems, key_of
from gatemark.map_domains.relay import PRIVATE
from gatemark.map_domains.spread import PATTERN_LENGTH_MAX, Spread

Exclusion = Literal["first_and_last_suffix", "system_ports"]


def _within(lowest: int, highest: int) -> JsonDict:
    return {"minimum": lowest, "maximum": highest}


_AT_LEAST_ONE: JsonDict = {"minItems": 1, "maxItems": DOMAINS_MAX}


class MapDomainModel(Table):
    """The rule of one MAP domain (RFC 7597 section 5), and of MAP-T its default mapping rule (RFC 7599 section 5.1)."""

    ipv6: Ipv6Prefix
    """Rule IPv6 prefix, with which the prefixes of all customer edges begin; with `ea_bits` 128 bits at most."""
    ipv4: Ipv4Prefix
    """Rule IPv4 prefix, with which the addresses of all customer edges begin; with `ea_bits` 48 bits at most."""
    ea_bits: StrictInt = Field(json_schema_extra=_within(0, EA_BITS_MAX))
    """Bits behind the rule IPv6 prefix: the rest of the IPv4 address, then the PSID. With fewer than an address needs
    each customer edge has an IPv4 prefix. 0: the rule of a single customer edge."""
    psid_offset: StrictInt = Field(DEFAULT_PSID_OFFSET, json_schema_extra=_within(0, PSID_OFFSET_MAX))
    """Bits of a port before the PSID (RFC 7597 section 5.1). 0: one range for each PSID."""
    psid_bits: StrictInt | None = Field(None, json_schema_extra=_within(0, PORT_BITS))
    """Length of the PSID, only with `ea_bits = 0`. Default: the address is not shared."""
    psid: StrictInt = Field(0, json_schema_extra=_within(0, 0xFFFF))
    """The PSID, only with `ea_bits = 0`."""
    dmr: Annotated[Ipv6Prefix | None, MAP_T] = None
    """Default mapping rule: it stands for all IPv4 addresses outside (RFC 6052). Its length is 32, 40, 48, 56, 64 or
    96."""
    weight: Annotated[StrictInt, EDGES_OF_TESTER] = Field(1, json_schema_extra=_within(1, PATTERN_LENGTH_MAX))
    """Share of the customer edges; 65,536 at most in all domains."""
    exclude: Annotated[tuple[Exclusion, ...], AsList, EDGES_OF_TESTER] = ()
    """Customer edges to leave out: those whose IPv4 suffix is all zeros or all ones; where `psid_offset` is 0, those
    with ports below 1024 (RFC 7596 section 5.1)."""

    @property
    def rule(self) -> MapDomain:
        """Return the rule by itself."""
        return MapDomain(
            rule_ipv6=self.ipv6,
            rule_ipv4=self.ipv4,
            ea_bits=self.ea_bits,
            dmr=self.dmr,
            psid_offset=self.psid_offset,
            psid_bits=self.psid_bits,
            psid=self.psid,
            weight=self.weight,
            except_suffixes="first_and_last_suffix" in self.exclude,
            except_system_ports="system_ports" in self.exclude,
        )


class SoftwiresModel(Table):
    """Softwires of an lwAFTR, as many as addresses and PSIDs tell apart: a part of its table (RFC 7596 section 5.1)."""

    ipv6: Ipv6Prefix
    """Prefix of the addresses of all lwB4s, of length 64. Behind it follow 16 zero bits, the IPv4 address and the
    PSID."""
    ipv4: Ipv4Prefix
    """Their IPv4 addresses: all of this prefix."""
    psid_bits: StrictInt = Field(json_schema_extra=_within(0, PORT_BITS))
    """Length of the PSID. 4: 16 lwB4s share an address. 0: none is shared."""
    psid_offset: StrictInt = Field(0, json_schema_extra=_within(0, PSID_OFFSET_MAX))
    """Bits of a port before the PSID; 0, as it should be: one range of ports for each PSID."""
    weight: Annotated[StrictInt, EDGES_OF_TESTER] = Field(1, json_schema_extra=_within(1, PATTERN_LENGTH_MAX))
    """Share of the lwB4s; 65,536 at most in all parts."""
    exclude: Annotated[tuple[Exclusion, ...], AsList, EDGES_OF_TESTER] = ()
    """Softwires to leave out: those whose IPv4 suffix is all zeros or all ones; where `psid_offset` is 0, those with
    ports below 1024."""

    @property
    def rule(self) -> MapDomain:
        """Return it as a rule, whose EA values are the numbers of the softwires."""
        return MapDomain(
            rule_ipv6=self.ipv6,
            rule_ipv4=self.ipv4,
            ea_bits=32 - self.ipv4.prefixlen + self.psid_bits,
            in_identifier=True,
            psid_offset=self.psid_offset,
            weight=self.weight,
            except_suffixes="first_and_last_suffix" in self.exclude,
            except_system_ports="system_ports" in self.exclude,
        )


class MapGatewayModel(Table):
    """How a recipe's gateway is made of rules (`gatemark.map_domains.tayga`, `gatemark.map_domains.linux`)."""

    private: Ipv4Prefix = PRIVATE
    """Addresses behind which a relay sees customer edges that share theirs; the first is tayga's own."""


class MeshModel(Table):
    """Mesh mode: the hosts outside are other customer edges of the gateway's rule, which it reaches directly, by a
    forwarding mapping rule (RFC 7597 section 5, flag F of RFC 7598 section 4.1), and not through the border relay."""

    psid: StrictInt | None = Field(None, json_schema_extra=_within(0, 0xFFFF))
    """PSID that all of them have; connections go to ports of its set. Default: the next one after the gateway's."""


@lru_cache(maxsize=64)
def _agree(rules: tuple[MapDomain, ...], edges: int | None) -> bool:
    """Return whether no rule contradicts itself or another one; asked again for thousands of packets."""
    return not any(domain_problems(rules, edges=edges))


class MapModel(Table):
    """The domains of MAP gateways, the softwires of an lwAFTR, and the customer edges that the Tester emulates or that
    the gateway is. The lwB4s of an lwAFTR are called customer edges as well."""

    domains: Annotated[tuple[MapDomainModel, ...], WITH_MAP_RULES] = Field((), json_schema_extra=_AT_LEAST_ONE)
    """The rules, 1 to 1024."""
    softwires: Annotated[tuple[SoftwiresModel, ...], WITH_BINDINGS] = Field((), json_schema_extra=_AT_LEAST_ONE)
    """The binding table, in 1 to 1024 parts."""
    end_user_prefix: Annotated[Ipv6Prefix | None, EDGE] = None
    """IPv6 prefix of the customer edge that the gateway is: the rule IPv6 prefix and the EA bits (RFC 7597 section
    5.2); of an lwB4 its whole address, with `/128`. Default: of a rule without EA bits its `ipv6`."""
    mesh: Annotated[MeshModel | None, MAP_EDGES, NO_ECHO] = None
    """The hosts outside, `right.ipv4`, are other customer edges of the rule. Default: they are behind the border relay.
    """
    edges: Annotated[Count | None, EDGES_OF_TESTER] = None
    """How many customer edges are emulated. Default: all that the rules have."""
    order: Annotated[Order, EDGES_OF_TESTER] = "pseudorandom"
    """Which customer edges of a domain come first: those with the lowest EA values, the highest, or any."""
    choice: Annotated[EdgeChoice, EDGES_OF_TESTER] = "cycle"
    """Customer edge of each foreground frame: one after the other, or drawn each time."""
    onlink: Annotated[StrictBool, EDGES_OF_TESTER] = False
    """Customer edges are neighbours of the gateway and are answered for one by one, for small numbers. Otherwise the
    gateway reaches them all through `left.ipv6.address`, or through the router there with `address_mode =
    "nexthop"`."""
    forward_ports: Annotated[Variation, EDGES_OF_TESTER] = "pseudorandom"
    """How the source port varies within the port set of a frame's customer edge."""
    reverse_ports: Annotated[Variation, EDGES_OF_TESTER] = "pseudorandom"
    """The same for the destination port of the reverse direction. Customer edges that may use every port have those of
    `traffic.source_ports` in both directions."""

    @property
    def parts(self) -> tuple[MapDomainModel, ...] | tuple[SoftwiresModel, ...]:
        """Return what holds the rules."""
        return self.domains or self.softwires

    @property
    def key(self) -> str:
        """Return the key of these."""
        return key_of(self.whole_rules)

    @cached_property
    def whole_rules(self) -> tuple[MapDomain, ...]:
        """Return the rule of each domain by itself."""
        return tuple(part.rule for part in self.parts)

    @cached_property
    def rules(self) -> tuple[MapDomain, ...]:
        """Return the rules of all domains, each without the customer edges that a longer one takes."""
        return nested(self.whole_rules)

    @property
    def translates(self) -> bool:
        """Return whether the rules say how addresses are translated; False if any of them has a problem."""
        return self.is_consistent and all(rule.dmr is not None for rule in self.whole_rules)

    @cached_property
    def is_consistent(self) -> bool:
        """Return whether no rule contradicts itself or another one."""
        is_of_one_kind = not (self.domains and self.softwires)
        return is_of_one_kind and _agree(self.whole_rules, self.edges)

    @cached_property
    def gateway_edge(self) -> Edge | None:
        """Return the customer edge that the gateway is; None if the rule or its end-user prefix has a problem."""
        rules = self.whole_rules
        if len(rules) != 1 or not self.is_consistent:
            return None
        prefix = self.end_user_prefix or (None if rules[0].ea_bits else rules[0].rule_ipv6)
        if prefix is None or prefix.prefixlen != rules[0].delegated_length:
            return None
        ea = rules[0].ea_in(prefix.network_address)
        edge = None if ea is None else Edge(rules[0], ea)
        is_other = rules[0].in_identifier and edge is not None and edge.address != prefix.network_address
        return None if is_other else edge

    @property
    def peers(self) -> PeerEdges | None:
        """Return the other customer edges outside; None without any, and where the rule or their PSID has a problem."""
        if self.mesh is None:
            return None
        edge = self.gateway_edge
        if edge is None or edge.domain.kind == "IPv4 prefix" or not edge.domain.suffix_bits:
            return None
        psids = edge.domain.sharing_ratio
        psid = (edge.psid + 1) % psids if self.mesh.psid is None else self.mesh.psid
        return PeerEdges(edge, psid) if 0 <= psid < psids else None

    @property
    def spread(self) -> Spread:
        """Return how the customer edges are spread over the domains."""
        return Spread(tuple(part.weight for part in self.parts))

    @property
    def edge_count(self) -> int:
        """Return the number of customer edges."""
        return self.edges or self.spread.edges_max([rule.edge_count for rule in self.rules])
