"""Checks of machine, rights, tools, engine, ports and gateway path before anything is measured.

Each check gives findings; a finding says what was observed and what to do about it. Nothing here changes the machine,
except that the check of the gateway path makes the campaign's test bed and removes it again.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gatemark.bed_kinds import BED_KINDS, bed_kinds_where
from gatemark.campaign.tester_memory import available_bytes, most_connections, table_bytes
from gatemark.config import defaults
from gatemark.config.model import CampaignFile
from gatemark.config.tables import SideModel
from gatemark.dut.choose_kernel import kernel_of
from gatemark.dut.cleanup import find_leftovers
from gatemark.dut.commands import DEBIAN_PACKAGES, require_program, try_command
from gatemark.dut.cpu_visitors import watch_visitors
from gatemark.dut.isolation import isolate, port_problems
from gatemark.dut.kernel_counters import neighbours_held
from gatemark.dut.port_name import NET_FOLDER
from gatemark.dut.recipe import complete_campaign, load_recipe
from gatemark.dut.steering import plan_cores, usable_cpus
from gatemark.engine.process import start_engine
from gatemark.errors import ConfigError, GatemarkError, TestBedError
from gatemark.findings import Finding, failed
from gatemark.kernels.store import BUILD_COMMAND, kernels
from gatemark.port_kinds import parse_port
from gatemark.preflight import check_gateway_path
from gatemark.results.this_machine import colon_file, machine_facts
from gatemark.technology import FAMILY_WORDS, SIDES
from gatemark.units import format_duration_ns

CLOCK_WATCH_SECONDS = 0.3
"""How long the clock is watched for stalls."""
VISITORS_WATCH_SECONDS = 1.0
"""How long other threads and interrupts are counted."""
INTERRUPTS_PER_SECOND_MAX = 5_000
"""More than this take a percent of a CPU and more."""
MEMORY_KILOBYTES_MIN = 512 * 1024
"""Least memory that should be free: buffers, rings and the bitmap of a long trial; a state table comes on top."""
STEAL_WARNING_PERCENT = 1.0
BED_TOOLS = tuple(dict.fromkeys(tool for kind in BED_KINDS.values() for tool in kind.programs))
EXAMPLE_TOOLS = (*BED_TOOLS, "nft", "iptables", "conntrack", "tayga")
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}


def run_checks(campaign: CampaignFile | None = None) -> list[Finding]:
    """Run all checks; with a campaign also those of its ports, and one frame each way through its gateway."""
    checks: list[Callable[[CampaignFile | None], Iterator[Finding]]] = [
        check_campaign,
        check_cpus,
        check_clock,
        check_visitors,
        check_memory,
        check_rights,
        check_tools,
        check_kernel,
        check_engine,
        check_ports,
        check_neighbour_tables,
        check_leftovers,
    ]
    findings: list[Finding] = []
    for check in checks:
        try:
            findings.extend(check(campaign))
        except GatemarkError as error:
            findings.extend(failed(check.__name__.removeprefix("check_").replace("_", " "), error))
    if campaign is not None and not any(finding.status == "failed" for finding in findings):
        findings.extend(check_gateway_path(campaign))
    return findings


def check_campaign(campaign: CampaignFile | None) -> Iterator[Finding]:
    """The campaign and its recipe fit together."""
    if campaign is None:
        return
    technology = complete_campaign(campaign).technology
    yield Finding(check="campaign", status="ok", observed=f"{campaign.source}: {technology.name}, complete")


def check_cpus(campaign: CampaignFile | None) -> Iterator[Finding]:
    """CPU, how the cores are shared, frequency governor, time stamp counter, time stolen by a hypervisor."""
    machine = machine_facts()
    usable = usable_cpus()
    yield Finding(
        check="cpus",
        status="ok" if len(usable) > 1 else "warning",
        observed=f"{machine.cpu_model or '?'}, {len(usable)} usable, isolated: {machine.cpus_isolated or 'none'}",
        remedy="" if len(usable) > 1 else "on one CPU the Tester and a netns gateway slow each other down: add a CPU",
    )
    if campaign is not None and campaign.bed.gateway_is_local:
        plan = plan_cores(usable, tester=campaign.testbed.cores, gateway=campaign.testbed.gateway_cores)
        yield Finding(
            check="steering",
            status="warning" if plan.shared else "ok",
            observed=f"Tester on {list(plan.tester)}, gateway on {list(plan.gateway)}",
            remedy="a limit may belong to either: name distinct testbed.cores and gateway_cores" if plan.shared else "",
        )
    slow = machine.governor not in (None, "performance")
    yield Finding(
        check="frequency governor",
        status="warning" if slow else "ok",
        observed=machine.governor or "not shown by this machine",
        remedy="cpupower frequency-set --governor performance" if slow else "",
    )
    flags = colon_file(Path("/proc/cpuinfo")).get("flags", "").split()
    invariant = "nonstop_tsc" in flags and "constant_tsc" in flags
    yield Finding(
        check="time stamp counter",
        status="ok" if invariant else "warning",
        observed="invariant" if invariant else "not known to be invariant",
        remedy="" if invariant else "pacing may be off where the frequency changes: fix the frequency in the firmware",
    )


def check_clock(campaign: CampaignFile | None) -> Iterator[Finding]:
    """Granularity of the clock, and the longest stall of a busy loop: what a sender's lateness would be at least."""
    stolen, total = _stolen_ticks()
    granularity_ns, stall_ns = watch_clock(CLOCK_WATCH_SECONDS)
    stolen_after, total_after = _stolen_ticks()
    limit_ns = campaign.validity.lateness_max_ns if campaign is not None else defaults.LATENESS_MAX_NS
    stalled = stall_ns > limit_ns
    yield Finding(
        check="clock",
        status="warning" if stalled else "ok",
        observed=f"granularity {granularity_ns} ns, longest stall {stall_ns / 1000:.0f} microseconds"
        f" in {CLOCK_WATCH_SECONDS} s",
        remedy="another program runs on this CPU: stop it, isolate CPUs (isolcpus=), or name others in testbed.cores"
        if stalled
        else "",
    )
    percent = 100 * (stolen_after - stolen) / max(1, total_after - total)
    machine = "none seen" if machine_facts().hypervisor is None else "virtual machine"
    yield Finding(
        check="hypervisor",
        status="warning" if percent > STEAL_WARNING_PERCENT else "ok",
        observed=f"{machine}, {percent:.1f} % of the time stolen",
        remedy="other guests take CPU time, so figures will scatter" if percent > STEAL_WARNING_PERCENT else "",
    )


def check_visitors(campaign: CampaignFile | None) -> Iterator[Finding]:
    """Threads that keep a CPU for longer than a frame may be late, and devices that interrupt it all the time."""
    limit_ns = campaign.validity.lateness_max_ns if campaign is not None else defaults.LATENESS_MAX_NS
    watched = watch_visitors(VISITORS_WATCH_SECONDS)
    long = [visit for visit in watched.visits if visit.stretch_ns > limit_ns][:3]
    longest = [visit for visit in watched.visits[:1] if not long]
    words = ", ".join(
        f"{visit.name} (thread {visit.thread}) on CPU {visit.cpu} for {format_duration_ns(visit.stretch_ns)}"
        f" at a time, {visit.times} times"
        for visit in long or longest
    )
    yield Finding(
        check="other work",
        status="warning" if long else "ok",
        observed=f"in {VISITORS_WATCH_SECONDS:g} s {words or 'nothing else ran'}",
        remedy="work on the same CPU waits that long: stop it, isolate CPUs (isolcpus=), or move it off the CPUs of"
        f" the Tester and the gateway, for example taskset -pc 0 {long[0].thread}"
        if long
        else "",
    )
    busy = [row for row in watched.interrupts if row.times > INTERRUPTS_PER_SECOND_MAX * watched.seconds][:1]
    most = (busy or watched.interrupts)[:1]
    yield Finding(
        check="interrupts",
        status="warning" if busy else "ok",
        observed="".join(
            f"most are of {row.name} (number {row.number}), {row.times / watched.seconds:.0f}/s on CPU {row.cpu}"
            for row in most
        )
        or "no device interrupts",
        remedy=f"give them to a CPU without workers: echo CPU > /proc/irq/{busy[0].number}/smp_affinity_list"
        if busy
        else "",
    )


def watch_clock(seconds: float) -> tuple[int, int]:
    """Read the monotonic clock in a loop; return its smallest step and the largest gap between two readings, in ns."""
    begin = last = time.monotonic_ns()
    smallest, largest = 1 << 62, 0
    while last - begin < seconds * 1e9:
        now = time.monotonic_ns()
        gap = now - last
        if gap > largest:
            largest = gap
        if 0 < gap < smallest:
            smallest = gap
        last = now
    return smallest, largest


def check_memory(campaign: CampaignFile | None) -> Iterator[Finding]:
    """Free memory and huge pages."""
    available = available_bytes() // 1024
    most = 0 if campaign is None else most_connections(campaign)[0]
    needed = MEMORY_KILOBYTES_MIN + table_bytes(most) // 1024
    low = available < needed
    yield Finding(
        check="memory",
        status="warning" if low else "ok",
        observed=f"{available // 1024} MiB available" + (f" for {most} connections" if most else ""),
        remedy=f"free memory: make at least {needed // 1024} MiB available" if low else "",
    )
    total = machine_facts().huge_pages_total
    free = int(colon_file(Path("/proc/meminfo")).get("HugePages_Free", "0"))
    needs_huge_pages = any(side and side.port and parse_port(side.port).kind.is_card for side in _sides(campaign))
    missing = needs_huge_pages and free == 0
    yield Finding(
        check="huge pages",
        status="warning" if missing else "ok",
        observed=f"{free} of {total} free" if total else "none; gatemark works without them",
        remedy="sysctl vm.nr_hugepages=1024; mount -t hugetlbfs none /dev/hugepages" if missing else "",
    )


def check_rights(campaign: CampaignFile | None) -> Iterator[Finding]:
    """Root, or the capabilities that namespaces and network interfaces need."""
    mask = int(colon_file(Path("/proc/self/status")).get("CapEff", "0"), 16)
    lacking = [name for name, bit in _CAPABILITIES.items() if not mask >> bit & 1]
    root = os.geteuid() == 0
    if campaign is not None and not campaign.bed.needs_rights:
        yield Finding(check="rights", status="ok", observed=f"{campaign.bed.words} itself needs none")
        return
    good = root and not lacking
    without = bed_kinds_where(lambda kind: not kind.needs_rights)
    yield Finding(
        check="rights",
        status="ok" if good else ("failed" if campaign is not None else "warning"),
        observed="root" if good else f"user {os.geteuid()}, lacking {', '.join(lacking) or 'root'}",
        remedy="" if good else f'run as root, for example with sudo; testbed.kind = "{without}" needs no rights',
    )


def check_tools(campaign: CampaignFile | None) -> Iterator[Finding]:
    """Programs that the test bed and the gateway's recipe need."""
    needed: dict[str, str] = {}
    if campaign is None:
        needed = {tool: DEBIAN_PACKAGES[tool] for tool in EXAMPLE_TOOLS}
    else:
        needed = {tool: DEBIAN_PACKAGES[tool] for tool in campaign.bed.programs}
        if campaign.testbed.recipe is not None:
            needed |= load_recipe(campaign.testbed.recipe).programs
        if campaign.gateway.control is not None and campaign.gateway.control.host is not None:
            needed["ssh"] = DEBIAN_PACKAGES["ssh"]
    tools = "" if campaign is None else _kernel_tools(campaign)
    missing = []
    for tool, package in needed.items():
        try:
            if shutil.which(tool, path=tools) is None:
                require_program(tool, package)
        except TestBedError:
            missing.append((tool, package))
    if not missing:
        yield Finding(check="tools", status="ok", observed=f"{', '.join(needed) or 'none'} needed, all installed")
    for tool, package in missing:
        yield Finding(
            check="tools",
            status="failed" if campaign is not None else "warning",
            observed=f"{tool} is not installed",
            remedy=f"apt-get install {package}",
        )


def _kernel_tools(campaign: CampaignFile) -> str:
    """Return the folder of the tools that come with the gateway's kernel; empty if none do."""
    try:
        choice = kernel_of(campaign.testbed)
    except TestBedError:
        return ""  # reported by check_kernel
    return "" if choice is None or choice.kernel is None else str(choice.kernel.tools)


def check_kernel(campaign: CampaignFile | None) -> Iterator[Finding]:
    """Which kernel the gateway gets, and why; without a campaign, which there are."""
    if campaign is None:
        built = ", ".join(kernel.facts.release for kernel in kernels() if kernel.facts and kernel.is_current)
        others = f"User-Mode Linux {built}" if built else f"no other (`{BUILD_COMMAND}`)"
        yield Finding(
            check="kernels", status="ok", observed=f"this machine's, Linux {os.uname().release}; for gateways {others}"
        )
        return
    choice = kernel_of(campaign.testbed)
    if choice is not None:
        plan = plan_cores(usable_cpus(), tester=campaign.testbed.cores, gateway=campaign.testbed.gateway_cores)
        yield Finding(check="kernel", status="ok", observed=choice.words(len(plan.gateway)))


def check_engine(campaign: CampaignFile | None) -> Iterator[Finding]:
    """The engine is there, starts, and speaks our protocol."""
    with start_engine() as engine:
        hello = engine.hello()
    yield Finding(
        check="engine",
        status="ok",
        observed=f"version {hello['version']}, {hello['dpdk']}, {hello['build']} build,"
        f" clock {hello['tsc_hz'] / 1e6:.0f} MHz",
    )


def check_ports(campaign: CampaignFile | None) -> Iterator[Finding]:
    """Ports of the campaign: there, up, not the way to the rest of the world, no offloads, MTU large enough."""
    if campaign is None or campaign.bed.makes_ports:
        return
    sides = dict(zip(SIDES, _sides(campaign), strict=True))
    if not campaign.bed.must_name_ports and not any(side is not None and side.port for side in sides.values()):
        return
    ports = {f"{name}.port": side.port for name, side in sides.items() if side is not None and side.port is not None}
    problems = port_problems(ports)
    for name, side in sides.items():
        check = f"port {name}"
        if side is None or side.port is None:
            remedy = f'add {name}.port, for example "af_packet:eth1"'
            yield Finding(check=check, status="failed", observed="not named", remedy=remedy)
            continue
        bad = [problem for problem in problems if problem.where == f"{name}.port"]
        for problem in bad:
            yield Finding(check=check, status="failed", observed=problem.what, remedy=problem.fix)
        interface = parse_port(side.port).interface
        if not bad and interface is not None:
            yield from _check_interface(check, interface, side)
        elif not bad:
            yield Finding(check=check, status="ok", observed=f"{side.port} can be opened")
    if not problems:
        with isolate(ports) as dropped:
            names = ", ".join(dropped.interfaces)
        observed = f"during a measurement, traffic that arrives at {names} does not reach this machine's IP"
        yield Finding(
            check="isolation", status="ok", observed=observed if names else "this machine forwards nothing from there"
        )


def _check_interface(check: str, interface: str, side: SideModel) -> Iterator[Finding]:
    """Link, MTU and offloads of a kernel interface."""
    carrier = _read(NET_FOLDER / interface / "carrier").strip() == "1"
    yield Finding(
        check=check,
        status="ok" if carrier else "failed",
        observed=f"{interface}: link {'up' if carrier else 'down'}",
        remedy="" if carrier else f"ip link set {interface} up, and check the cable and the other end",
    )
    mtu = int(_read(NET_FOLDER / interface / "mtu").strip() or 0)
    needed = side.mtu or 0
    yield Finding(
        check=check,
        status="failed" if mtu < needed else "ok",
        observed=f"{interface}: MTU {mtu}",
        remedy=f"ip link set {interface} mtu {needed}" if mtu < needed else "",
    )
    features = try_command(["ethtool", "-k", interface]) or ""
    merging = [name for name in ("generic-receive-offload", "large-receive-offload") if f"{name}: on" in features]
    yield Finding(
        check=check,
        status="warning" if merging else "ok",
        observed=f"{interface}: {', '.join(merging) or 'no frame-merging offload'}",
        remedy=f"ethtool -K {interface} gro off lro off" if merging else "",
    )


def check_neighbour_tables(campaign: CampaignFile | None) -> Iterator[Finding]:
    """Linux has one neighbour table of each family for all namespaces, with at most gc_thresh3 neighbours."""
    if campaign is None or not campaign.bed.shares_kernel or campaign.testbed.recipe is None:
        return
    try:
        known = complete_campaign(campaign)
    except ConfigError:
        return  # reported by check_campaign
    is_guest = bool(_kernel_tools(campaign))
    for family, words in FAMILY_WORDS.items():
        hosts = 0
        for name in SIDES:
            side = known.side(name)
            is_neighbour = side.address_mode != "nexthop" and not known.roles.is_behind_relay(name, family)
            model = side.family(family) if is_neighbour else None
            if model is not None:
                varied = model.hosts.range.count if model.hosts.range is not None else 1
                hosts += varied * known.directions.networks(name)
        limit = int(_read(Path(f"/proc/sys/net/{family}/neigh/default/gc_thresh3")).strip() or 0)
        held = 0 if is_guest else neighbours_held(family)
        others = f" and {held} neighbours that all network namespaces of this machine have now" if held else ""
        if limit and hosts and hosts + held > limit:
            sizes = [f"net.{family}.neigh.default.gc_thresh{level}={(hosts + held) * 2}" for level in (3, 2)]
            yield Finding(
                check="neighbour table",
                status="warning",
                observed=f"{hosts} on-link {words} hosts{others}: the gateway's kernel keeps at most {limit}",
                remedy=f'sysctl {" ".join(sizes)}, or use address_mode = "nexthop"',
            )


def check_leftovers(campaign: CampaignFile | None) -> Iterator[Finding]:
    """Test beds and settings of processes that no longer live."""
    left = find_leftovers()
    if left:
        remedy = "run gatemark cleanup; the next start with a netns test bed also removes it"
        yield Finding(check="leftovers", status="warning", observed=str(left).replace("\n", "; "), remedy=remedy)


def _sides(campaign: CampaignFile | None) -> tuple[SideModel | None, SideModel | None]:
    return (None, None) if campaign is None else (campaign.left, campaign.right)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _stolen_ticks() -> tuple[int, int]:
    """Clock ticks stolen by a hypervisor, and all ticks, of all CPUs together since boot."""
    fields = [int(field) for field in _read(Path("/proc/stat")).splitlines()[0].split()[1:9]]
    return fields[7], sum(fields)
