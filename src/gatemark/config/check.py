"""What several keys of the file must satisfy together, before anything is known from a recipe. Pure.

Each check is a generator of problems and names the tables it reads; a check is left out while one of its tables has
problems of its own, so that one mistake is reported once.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

from gatemark.bed_kinds import bed_kinds_where
from gatemark.config.map_check import check_map
from gatemark.config.model import CampaignFile
from gatemark.config.only import STATEFUL, refusals
from gatemark.config.problems import listed_twice, problem
from gatemark.config.tables import HostsModel
from gatemark.config.views import Directions, Roles
from gatemark.errors import Problem
from gatemark.facts import ONE_WAYS
from gatemark.port_kinds import PORT_KINDS, parse_port
from gatemark.technology import SIDES, TECHNOLOGIES, Family, SideName, Technology, technologies_where

Check = Callable[[CampaignFile], Iterator[Problem]]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like `word`, if any is similar."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)), None)


def check_testbed(campaign: CampaignFile) -> Iterator[Problem]:
    """What a kind of test bed needs."""
    bed, kind = campaign.testbed, campaign.bed
    if kind.has_recipe and bed.recipe is None:
        yield problem(campaign, "testbed.recipe", "is missing", 'name a recipe, for example recipe = "linux-router4"')
    for key, cores in (("cores", bed.cores), ("gateway_cores", bed.gateway_cores)):
        if len(set(cores)) < len(cores):
            yield problem(campaign, f"testbed.{key}", "names a CPU twice", "name each CPU once")


def check_gateway(campaign: CampaignFile) -> Iterator[Problem]:
    """The technology is known; explicit mappings are consistent (RFC 7757 section 3)."""
    gateway = campaign.gateway
    if gateway.technology is None and not campaign.bed.has_recipe:
        yield problem(campaign, "gateway.technology", "is missing", f"write one of {', '.join(TECHNOLOGIES)}")
    for index, entry in enumerate(gateway.eam):
        key = f"gateway.eam[{index}]"
        if 32 - entry.ipv4.prefixlen > 128 - entry.ipv6.prefixlen:
            yield problem(
                campaign,
                key,
                f"{entry.ipv4} has more addresses than {entry.ipv6}",
                f"write an IPv6 prefix of length {96 + entry.ipv4.prefixlen} or less (RFC 7757 section 3.2)",
            )
        for earlier in gateway.eam[:index]:
            for mine, other in ((entry.ipv4, earlier.ipv4), (entry.ipv6, earlier.ipv6)):
                if mine == other:
                    yield problem(campaign, key, f"maps {mine} a second time", "map each prefix once")


def check_state(campaign: CampaignFile) -> Iterator[Problem]:
    """A loop-back translates nothing."""
    technology = campaign.technology
    if technology is not None and _has_no_loopback(technology) and not campaign.bed.has_gateway:
        yield problem(
            campaign,
            "gateway.technology",
            f"is {technology.name}, but a loop-back translates nothing",
            f"write {technologies_where(lambda row: row.is_stateful and not _has_no_loopback(row))}",
        )


def _has_no_loopback(technology: Technology) -> bool:
    """Whether connections cannot be used as they are sent: another family answers, or only ports of a set are right; or
    there is no link between two gateways."""
    return technology.is_stateful and (technology.is_translation or technology.is_edge or bool(technology.in_a_row))


def check_connections(campaign: CampaignFile) -> Iterator[Problem]:
    """Numbers of connections."""
    if campaign.connections is not None:
        yield from listed_twice(campaign, "connections.count", campaign.connections.count, "number")


def check_ports(campaign: CampaignFile) -> Iterator[Problem]:
    """Port names, and which kind of test bed needs them."""
    kind = campaign.bed
    for name in SIDES:
        side = campaign.left if name == "left" else campaign.right
        key = f"{name}.port"
        if kind.must_name_ports and (side is None or side.port is None):
            yield problem(campaign, key, "is missing", 'name the port, for example port = "pci:0000:01:00.0"')
        if side is None or side.port is None:
            continue
        if kind.makes_ports:
            if side.port not in kind.made_ports:
                made_ports = " or ".join(f'"{way}"' for way in kind.made_ports)
                named = bed_kinds_where(lambda other: other.must_name_ports)
                yield problem(
                    campaign,
                    key,
                    f"{side.port!r} is not allowed with kind = {kind.name}, whose ports the test bed makes",
                    f'leave it out, write only the kind, {made_ports}, or set kind = "{named}"',
                )
            continue
        port = parse_port(side.port)
        prefix = port.kind.name
        if prefix not in PORT_KINDS:
            guess = nearest(prefix, PORT_KINDS)
            hint = f"did you mean {guess}:{port.target}? " if guess else ""
            yield problem(
                campaign, key, f"{side.port!r} is not a kind of port", hint + f"known: {', '.join(PORT_KINDS)}"
            )
        elif port.target and not port.kind.takes_name:
            yield problem(campaign, key, f"{prefix} takes no name", f'write port = "{prefix}"')
        elif port.kind.takes_name and not port.target:
            yield problem(campaign, key, f"{prefix} needs a name", f'write for example port = "{prefix}:eth1"')
    left, right = campaign.left, campaign.right
    if (
        not kind.makes_ports
        and left
        and right
        and left.port
        and left.port == right.port
        and parse_port(left.port).kind.takes_name
    ):
        yield problem(campaign, "right.port", f"{right.port} is the left port as well", "a test needs two ports")


def check_side(name: SideName) -> Check:
    """Build the check of one side's addresses."""

    def check(campaign: CampaignFile) -> Iterator[Problem]:
        side = campaign.left if name == "left" else campaign.right
        for family, model in () if side is None else side.families.items():
            yield from _check_hosts(campaign, f"{name}.{family}", family, model.hosts)

    return check


def check_b4(campaign: CampaignFile) -> Iterator[Problem]:
    """Check the hosts behind B4s."""
    if campaign.b4 is not None:
        yield from _check_hosts(campaign, "b4", "ipv4", campaign.b4.hosts)


def _check_hosts(campaign: CampaignFile, key: str, family: Family, hosts: HostsModel) -> Iterator[Problem]:
    last = 2 if family == "ipv4" else 14
    if hosts.mode == "fixed":
        return
    if hosts.offset is None:
        yield problem(
            campaign, f"{key}.hosts.offset", "is missing", f"write the first of the two octets that vary, 0 to {last}"
        )
    elif hosts.offset > last:
        yield problem(campaign, f"{key}.hosts.offset", f"{hosts.offset} is beyond the address", f"write at most {last}")
    if hosts.range is None:
        yield problem(campaign, f"{key}.hosts.range", "is missing", 'write for example range = "2-254"')


def check_traffic(campaign: CampaignFile) -> Iterator[Problem]:
    """Sizes within their family's limits, nothing twice."""
    traffic = campaign.traffic
    for key, values in (("direction", traffic.direction), ("mix", traffic.mix)):
        yield from listed_twice(campaign, f"traffic.{key}", values, "value")
    if traffic.frame_sizes is not None:
        yield from listed_twice(campaign, "traffic.frame_sizes.octets", traffic.frame_sizes.octets, "size")
    tables = [("traffic", traffic), ("traffic.forward", traffic.forward), ("traffic.reverse", traffic.reverse)]
    for key, table in tables:
        for name in ("source_ports", "destination_ports"):
            ports = getattr(table, name, None)
            if ports is not None and ports.mode == "fixed" and ports.range.count > 1:
                yield problem(
                    campaign,
                    f"{key}.{name}.range",
                    f"{ports.range} is more than one port for mode fixed",
                    f'write one port, for example range = "{ports.range.minimum}"',
                )


def check_directions(campaign: CampaignFile) -> Iterator[Problem]:
    """No setting for a direction without traffic; the technology decides which directions have any."""
    traffic, technology = campaign.traffic, campaign.technology
    if technology is None:
        return
    roles = Roles(technology=technology, inside=campaign.gateway.initiator)
    in_use = Directions(traffic=traffic, roles=roles, validates=campaign.validates).in_use
    for way, other in (ONE_WAYS, ONE_WAYS[::-1]):
        if getattr(traffic, way) is not None and way not in in_use:
            yield problem(
                campaign, f"traffic.{way}", f"is set, but frames are sent {other} only", "leave the table out"
            )


def interval_problems(
    campaign: CampaignFile, key: str, *, minimum: object, maximum: object, resolution: int | Fraction
) -> Iterator[Problem]:
    """The bounds of a search are in order, and its resolution is below the maximum."""
    if isinstance(minimum, int | Fraction) and type(minimum) is type(maximum) and minimum > maximum:
        yield problem(campaign, f"{key}.minimum", f"is above {key}.maximum", "write a minimum below the maximum")
    if is_too_coarse(resolution, maximum):
        yield problem(
            campaign,
            f"{key}.resolution",
            f"is not below {key}.maximum, so nothing would be searched",
            'write for example resolution = "0.1%" of the maximum',
        )


def is_too_coarse(resolution: int | Fraction, maximum: object) -> bool:
    """Whether a search with this resolution would end at its first load."""
    if isinstance(resolution, Fraction):
        return resolution >= 1
    return isinstance(maximum, int) and resolution >= maximum


def misplaced(campaign: CampaignFile, skip: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """Keys and tables that do not apply to technology, test bed or procedures, as the rules at their fields say."""
    technology = None if "gateway" in skip else campaign.technology
    kind = None if "testbed" in skip else campaign.bed
    for key, what, fix in refusals(campaign, technology, kind, campaign.tables, skip=skip):
        yield problem(campaign, key, what, fix)


FILE_CHECKS: tuple[tuple[frozenset[str], Check], ...] = (
    (frozenset({"testbed", "gateway", "validity"}), check_testbed),
    (frozenset({"gateway", "testbed"}), check_gateway),
    (frozenset({"testbed", "left", "right"}), check_ports),
    (frozenset({"testbed", "left"}), check_side("left")),
    (frozenset({"testbed", "right"}), check_side("right")),
    (frozenset({"connections"}), check_connections),
    (frozenset({"traffic"}), check_traffic),
    (frozenset({"map"}), check_map),
    (frozenset({"b4"}), check_b4),
)
"""Checks of single tables and the tables that each reads."""

CHECKS_OF_STATEFUL: tuple[tuple[frozenset[str], Check], ...] = (
    (frozenset({"gateway", "testbed", "connections"}), check_state),
    (frozenset({"traffic", "gateway", "connections"}), check_directions),
)
"""Checks that read the tables of stateful procedures as well."""


def procedure_keys(campaign: CampaignFile) -> frozenset[str]:
    """Return the names of all tables of procedures that a file may have."""
    return frozenset(table.key for table in campaign.procedure_tables)


def file_problems(campaign: CampaignFile, skip: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """Yield what is wrong with a file; checks that read a table of `skip` are left out."""
    stateful = {table.key for table in campaign.procedure_tables if STATEFUL in table.only}
    for tables, check in (*FILE_CHECKS, *((tables | stateful, check) for tables, check in CHECKS_OF_STATEFUL)):
        if not tables & skip:
            yield from check(campaign)
    finders = {table.key for table in campaign.procedure_tables if table.finds_frame_rate}
    for table in campaign.tables:
        reads = {table.key, *table.reads, *(finders if table.reads_frame_rate else ())}
        if not reads & skip:
            yield from table.problems(campaign)
