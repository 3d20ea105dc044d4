"""What a test bed can do: one row for each kind of test bed. Pure.

Nothing else looks at the kind itself, except the choice of the class that makes the test bed (`dut.open`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from gatemark.port_kinds import KERNEL_PORTS

BedKindName = Literal["netns", "ports", "loopback"]
CoresSetBy = Literal["kernel_command_line", "hot_plug", "pinning"]
"""How a gateway got its cores: `maxcpus=` and a boot, CPUs taken offline, or its work bound to some of them."""
BootOccasion = Literal["never", "column", "repetition", "trial"]
"""Before what the gateway's host is booted."""
BOOT_WORDS: Mapping[BootOccasion, str] = MappingProxyType(
    {
        "never": "never",
        "column": "before the first trial of each session",
        "repetition": "before each repetition",
        "trial": "before each trial",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BedKind:
    """One row: what test beds of this kind have and can do."""

    name: BedKindName
    """Value of `testbed.kind`."""
    words: str
    """What it is, for reports."""
    has_gateway: bool = True
    """Whether there is a gateway; without one each port receives what the other sends, unchanged."""
    has_recipe: bool = False
    """Whether a recipe makes the gateway (`testbed.recipe`); it knows what the campaign file leaves open."""
    takes_control: bool = False
    """Whether the gateway is controlled by the commands of `gateway.control`."""
    gateway_is_local: bool = False
    """Whether the gateway works on CPUs of this machine (`testbed.gateway_cores`)."""
    shares_kernel: bool = False
    """Whether the gateway is in the kernel of this machine, so that its limits are the gateway's."""
    sees_host: bool = False
    """Whether the host of the gateway can be read: who else had the gateway's CPUs during a trial."""
    has_kernels: bool = False
    """Whether the gateway may have a kernel of its own (`testbed.kernel`)."""
    made_ports: tuple[str, ...] = ()
    """How the engine may open the ports that the test bed makes; empty: it makes none, and the file names them."""
    default_port: str | None = None
    """Port of a side for which the campaign file names none; None: the file must name it."""
    no_line_rate: str | None = None
    """Why its medium never has a line rate; None: its ports decide."""
    needs_rights: bool = True
    """Whether it cannot be used by an ordinary user."""
    programs: tuple[str, ...] = ()
    """Programs that it needs besides those of a recipe."""
    commands_run: str | None = None
    """As whom and where the commands of recipe or campaign file run, in words; None: it runs none."""

    @property
    def makes_ports(self) -> bool:
        """Whether it makes the Tester's ports itself."""
        return bool(self.made_ports)

    @property
    def must_name_ports(self) -> bool:
        """Whether the campaign file must name both ports."""
        return self.default_port is None

    @property
    def forwards_unchanged(self) -> bool:
        """Whether frames arrive as they were sent."""
        return not self.has_gateway


_ROWS = (
    BedKind(
        name="netns",
        words="network namespaces and virtual Ethernet pairs",
        has_recipe=True,
        gateway_is_local=True,
        shares_kernel=True,
        sees_host=True,
        has_kernels=True,
        made_ports=KERNEL_PORTS,
        default_port="af_packet",
        no_line_rate="virtual Ethernet pairs have no line rate",
        programs=("ip", "ethtool", "taskset", "setpriv", "unshare", "nsenter"),
        commands_run="as root, in namespaces of their own for network, mounts and process numbers, but not otherwise"
        " sandboxed: they can read, change and delete every file of this machine",
    ),
    BedKind(
        name="ports",
        words="two ports",
        takes_control=True,
        programs=("ip",),
        commands_run="on this machine as the user of gatemark, without any sandbox",
    ),
    BedKind(
        name="loopback",
        words="loop-back",
        has_gateway=False,
        default_port="ring",
        needs_rights=False,
    ),
)

BED_KINDS: Mapping[BedKindName, BedKind] = MappingProxyType({row.name: row for row in _ROWS})
RECIPE_BED = next(row for row in _ROWS if row.has_recipe)
"""The kind in which recipes make gateways."""


def bed_kinds_where(holds: Callable[[BedKind], bool]) -> str:
    """Return the names of the kinds for which `holds` is true, for a message: "netns or ports"."""
    return " or ".join(row.name for row in _ROWS if holds(row))
