"""What the rules of MAP domains must satisfy, each alone and all together. Pure.

A problem's place is the path of its key below the campaign file, such as `map.domains[2].ea_bits`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network

from gatemark.embedded_ipv4 import prefix_faults
from gatemark.errors import Problem
from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.nesting import nested
from gatemark.map_domains.port_set import PORT_BITS
from gatemark.map_domains.spread import PATTERN_LENGTH_MAX, Spread

EA_BITS_MAX = 48
SOFTWIRE_PREFIX_LENGTH = 64
"""Of the IPv6 addresses of lwB4s (RFC 7596 section 5.1)."""
PSID_OFFSET_MAX = 15
DOMAINS_MAX = 1024


def key_of(domains: Sequence[MapDomain]) -> str:
    """Return the key of the campaign file that holds these rules."""
    return "map.softwires" if any(domain.in_identifier for domain in domains) else "map.domains"


def domain_problems(domains: Sequence[MapDomain], *, edges: int | None = None) -> Iterator[Problem]:
    """Yield every contradiction of the rules, and of `edges` customer edges in them; None: all that there are."""
    if not domains:
        yield Problem(what="has no rules", where="map", fix="add [[map.domains]], or of an lwAFTR [[map.softwires]]")
        return
    key = key_of(domains)
    if len(domains) > DOMAINS_MAX:
        yield Problem(what=f"has {len(domains)} rules", where=key, fix=f"write at most {DOMAINS_MAX}")
        return
    each = [list(rule_problems(domain, f"{key}[{index}]")) for index, domain in enumerate(domains)]
    for problems in each:
        yield from problems
    yield from _repeated_prefixes(domains, key)
    yield from _dmr_overlaps(domains, key)
    spread = Spread(tuple(domain.weight for domain in domains))
    if min(spread.weights) < 1:
        return
    if spread.period > PATTERN_LENGTH_MAX:
        yield Problem(
            what=f"the weights add up to {spread.period}",
            where=key,
            fix=f"write smaller weights in the same ratios, at most {PATTERN_LENGTH_MAX} in all",
        )
        return
    sound = [index for index, problems in enumerate(each) if not problems]
    capacities = dict(zip(sound, (domain.edge_count for domain in nested([domains[i] for i in sound])), strict=True))
    yield from _too_many_edges(domains, capacities, spread, edges, key)


def rule_problems(domain: MapDomain, at: str) -> Iterator[Problem]:
    """Yield what contradicts itself within one rule."""
    yield from _softwire_problems(domain, at) if domain.in_identifier else _ea_problems(domain, at)
    yield from _port_problems(domain, at)
    yield from _psid_problems(domain, at)
    if domain.dmr is not None:
        yield from _dmr_problems(domain.dmr, at)
    yield from _exclusion_problems(domain, at)
    if domain.weight < 1:
        yield Problem(what=f"{domain.weight} is not a valid weight", where=f"{at}.weight", fix="write 1 or more")


def _ea_problems(domain: MapDomain, at: str) -> Iterator[Problem]:
    ea_bits, where = domain.ea_bits, f"{at}.ea_bits"
    most_by_ipv4 = EA_BITS_MAX - domain.rule_ipv4.prefixlen
    if not 0 <= ea_bits <= EA_BITS_MAX:
        fix = f"write at most {most_by_ipv4}: 32 bits of an IPv4 address and 16 of a PSID, less those of the rule"
        yield Problem(what=f"{ea_bits} is not between 0 and {EA_BITS_MAX}", where=where, fix=fix)
    elif ea_bits > most_by_ipv4:
        psid_bits = domain.rule_ipv4.prefixlen + ea_bits - 32
        what = f"{ea_bits} behind {domain.rule_ipv4} leaves {psid_bits} bits for the PSID, but a port has {PORT_BITS}"
        yield Problem(what=what, where=where, fix=f"write at most {most_by_ipv4}, or a shorter rule IPv4 prefix")
    if ea_bits > 128 - domain.rule_ipv6.prefixlen:
        what = f"{ea_bits} behind {domain.rule_ipv6} needs {domain.end_user_prefix_length} of 128 bits"
        fix = f"write at most {128 - domain.rule_ipv6.prefixlen}, or a shorter rule IPv6 prefix"
        yield Problem(what=what, where=where, fix=fix)


def _softwire_problems(domain: MapDomain, at: str) -> Iterator[Problem]:
    length, psid_bits = domain.rule_ipv6.prefixlen, domain.rule_ipv4.prefixlen + domain.ea_bits - 32
    if length != SOFTWIRE_PREFIX_LENGTH:
        what = f"{domain.rule_ipv6} has length {length}, but the interface identifiers of lwB4s have 64 bits"
        yield Problem(what=what, where=f"{at}.ipv6", fix="write a prefix of length 64 (RFC 7596 section 5.1)")
    if not 0 <= psid_bits <= PORT_BITS:
        what = f"{psid_bits} is not between 0 and {PORT_BITS}"
        yield Problem(what=what, where=f"{at}.psid_bits", fix="write how many bits of a port distinguish lwB4s")


def _port_problems(domain: MapDomain, at: str) -> Iterator[Problem]:
    offset, psid_bits = domain.psid_offset, domain.psid_length
    if not 0 <= offset <= PSID_OFFSET_MAX:
        fix = "write 0 to 15; the default of MAP is 6 (RFC 7597 section 5.1)"
        yield Problem(what=f"{offset} is not between 0 and {PSID_OFFSET_MAX}", where=f"{at}.psid_offset", fix=fix)
    elif psid_bits > PORT_BITS:
        if domain.ea_bits == 0:
            what, fix = (
                f"{psid_bits} is more than the {PORT_BITS} bits of a port",
                f"write at most {PORT_BITS - offset}",
            )
            yield Problem(what=what, where=f"{at}.psid_bits", fix=fix)
    elif offset + psid_bits > PORT_BITS:
        what = f"{offset} and a PSID of {psid_bits} bits are more than the {PORT_BITS} bits of a port"
        fix = f"write at most {PORT_BITS - psid_bits}, or make the PSID shorter"
        yield Problem(what=what, where=f"{at}.psid_offset", fix=fix)


def _psid_problems(domain: MapDomain, at: str) -> Iterator[Problem]:
    if domain.ea_bits > 0:
        for name, is_set in (("psid_bits", domain.psid_bits is not None), ("psid", domain.psid != 0)):
            if is_set:
                what = f"is not allowed with ea_bits = {domain.ea_bits}, from which the PSID is taken"
                yield Problem(what=what, where=f"{at}.{name}", fix="leave the key out, or set ea_bits = 0")
        return
    psid_bits = domain.psid_bits or 0
    if psid_bits > PORT_BITS:  # told with the ports
        return
    if psid_bits < 0:
        yield Problem(what=f"{psid_bits} is below 0", where=f"{at}.psid_bits", fix="write 0 to 16")
        return
    if not 0 <= domain.psid < 1 << psid_bits:
        what = f"{domain.psid} does not fit into {psid_bits} bits"
        fix = f"write at most {(1 << psid_bits) - 1}, or a larger psid_bits" if psid_bits else "write psid_bits as well"
        yield Problem(what=what, where=f"{at}.psid", fix=fix)
    if psid_bits and domain.rule_ipv4.prefixlen < 32:
        what = f"is set, but {domain.rule_ipv4} is not a single address, and only an address is shared"
        yield Problem(what=what, where=f"{at}.psid_bits", fix="write ipv4 with length 32, or leave psid_bits out")


def _dmr_problems(dmr: IPv6Network, at: str) -> Iterator[Problem]:
    for what, fix in prefix_faults(dmr):
        yield Problem(what=what, where=f"{at}.dmr", fix=fix)


def _exclusion_problems(domain: MapDomain, at: str) -> Iterator[Problem]:
    where = f"{at}.exclude"
    if domain.except_suffixes and domain.suffix_bits < 2:
        what = f"first_and_last_suffix leaves no customer edge with {max(0, domain.suffix_bits)} bits of IPv4 suffix"
        yield Problem(what=what, where=where, fix="leave it out")
    if domain.except_system_ports:
        fix = "leave it out"
        if domain.ea_psid_bits <= 0:
            what = f"system_ports does not apply to {'softwires' if domain.in_identifier else 'a rule'} without a PSID"
            yield Problem(what=what, where=where, fix=fix)
        elif domain.psid_offset:
            what = f"system_ports is not allowed with psid_offset = {domain.psid_offset}, where no PSID alone has them"
            yield Problem(what=what, where=where, fix=f"{fix}, or set psid_offset = 0")


def _repeated_prefixes(domains: Sequence[MapDomain], key: str) -> Iterator[Problem]:
    """Rules of equal prefixes: the longest match would have to choose between them."""
    first_ipv6: dict[IPv6Network, int] = {}
    first_ipv4: dict[IPv4Network, list[int]] = {}
    for index, domain in enumerate(domains):
        at = f"{key}[{index}]"
        earlier = first_ipv6.setdefault(domain.rule_ipv6, index)
        if earlier != index:
            what = f"{domain.rule_ipv6} is the IPv6 prefix of {key}[{earlier}] as well"
            yield Problem(what=what, where=f"{at}.ipv6", fix="give each rule a prefix of its own")
        sharers = first_ipv4.setdefault(domain.rule_ipv4, [])
        clash = next(
            (problem for other in sharers for problem in _clash(domain, domains[other], f"{key}[{other}]", at)), None
        )
        if clash is not None:
            yield clash
        sharers.append(index)


def _clash(domain: MapDomain, other: MapDomain, name: str, at: str) -> Iterator[Problem]:
    """What two rules of the same IPv4 prefix contradict: only single PSIDs can share an address (no EA bits)."""
    address = domain.rule_ipv4.network_address
    if domain.ea_bits or other.ea_bits or not domain.psid_length or not other.psid_length:
        what = f"{domain.rule_ipv4} is the IPv4 prefix of {name} as well: two customer edges would be the same"
        fix = "give each rule a prefix of its own"
        if not domain.in_identifier:
            fix += ", or only one PSID of an address: ea_bits = 0, psid_bits and psid"
        yield Problem(what=what, where=f"{at}.ipv4", fix=fix)
        return
    for key in ("psid_offset", "psid_bits"):
        mine, theirs = getattr(domain, key), getattr(other, key)
        if mine != theirs:
            what = f"{mine} is not the {theirs} of {name}, which shares {address}: their port sets would overlap"
            yield Problem(what=what, where=f"{at}.{key}", fix=f"write {key} = {theirs}, or another address")
    if domain.psid_offset == other.psid_offset and domain.psid_bits == other.psid_bits and domain.psid == other.psid:
        what = f"{domain.psid} of {address} is the PSID of {name} as well"
        yield Problem(what=what, where=f"{at}.psid", fix="give each customer edge a PSID of its own")


def _dmr_overlaps(domains: Sequence[MapDomain], key: str) -> Iterator[Problem]:
    first: dict[IPv6Network, int] = {}
    for index, domain in enumerate(domains):
        if domain.dmr is None or first.setdefault(domain.dmr, index) != index:
            continue
        for number, other in enumerate(domains):
            if domain.dmr.overlaps(other.rule_ipv6):
                yield Problem(
                    what=f"{domain.dmr} overlaps {other.rule_ipv6}, the IPv6 prefix of {key}[{number}]",
                    where=f"{key}[{index}].dmr",
                    fix="choose a prefix outside of all rules: it does not represent addresses of customer edges",
                )


def _too_many_edges(
    domains: Sequence[MapDomain], capacities: Mapping[int, int], spread: Spread, edges: int | None, key: str
) -> Iterator[Problem]:
    """No domain is given more customer edges than it has; `capacities` has those of the rules without problems."""
    counts = spread.counts(edges or 0)
    for index, most in capacities.items():
        needed, rule = counts[index], domains[index]
        if most == 0:
            yield Problem(
                what="has only customer edges whose addresses longer rules hold",
                where=f"{key}[{index}]",
                fix="leave it out, or choose prefixes that lie apart: a gateway takes the longest match",
            )
        elif needed > most and rule.ea_bits == 0 and not rule.in_identifier:
            yield Problem(
                what=f"is 0, so the rule has a single customer edge, but {needed} of {edges} are to be in this domain",
                where=f"{key}[{index}].ea_bits",
                fix="write a rule for each customer edge, or fewer edges",
            )
        elif needed > most:
            fix = "write fewer"
            if len(capacities) == len(domains):
                fix = f"write at most {spread.edges_max([capacities[number] for number in range(len(domains))])}"
            yield Problem(
                what=f"{edges} are too many: {needed} are to be in {key}[{index}], which has {most}",
                where="map.edges",
                fix=f"{fix}, or give it more {'PSID' if rule.in_identifier else 'EA'} bits"
                + (" or less weight" if len(domains) > 1 else ""),
            )
