"""What figures are measured with: one list, with the names in the tidy table, units and words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from gatemark.results.unit import unit_named
from gatemark.units import format_duration_ns, format_ratio

DASH = "\u2013"
"""En dash: from ... to, and nothing there."""

Coordinate = int | str | None
Place = Mapping[str, Coordinate]
"""Coordinates of a figure, by name."""


class Name(NamedTuple):
    """A coordinate: a column of `result.csv`, if it has a meaning there; others are only drawn."""

    name: str
    unit: str = ""
    meaning: str = ""
    always: bool = True
    """Whether each `result.csv` has the column; if not, those where some row has the coordinate."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One thing that figures are measured with."""

    coordinates: tuple[Name, ...]
    heading: str
    """What it is, with its unit, above a column of a table."""
    write: Callable[..., str] = str
    """Its values in words, one argument for each of its names."""
    phrase: str = ""
    """What is said of a figure that was measured with it; `{}` stands for the words. Default: its label and they."""
    label: str = field(default="", kw_only=True)
    """The heading on one line, where that needs other words."""
    axis: str = field(default="", kw_only=True)
    """What it is below the axis of a plot, where that needs other words than the label."""
    numeric: bool = field(default=True, kw_only=True)
    say: Callable[..., str] | None = field(default=None, kw_only=True)
    """What is said instead of the phrase, where that needs other words than a table."""

    def __post_init__(self) -> None:
        label = self.label or self.heading.replace("-\n", "").replace("\n", " ")
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "phrase", self.phrase or f"{label} {{}}")
        object.__setattr__(self, "axis", self.axis or label)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(coordinate.name for coordinate in self.coordinates)

    @property
    def is_common(self) -> bool:
        """Whether each `result.csv` has columns of it."""
        return any(coordinate.always for coordinate in self.coordinates)

    def words(self, place: Place) -> str:
        """Return the values of a place in words; empty where it has none."""
        values = [place.get(name) for name in self.names]
        return "" if all(value in (None, "") for value in values) else self.write(*values)

    def said(self, place: Place) -> str:
        """Return the phrase about a place; empty where it has no value."""
        words = self.words(place)
        if words and self.say is not None:
            return self.say(*(place.get(name) for name in self.names))
        return self.phrase.format(words) if words else ""


def size_words(ipv4: object, ipv6: object, tunnel: object = None) -> str:
    """Frame size of both families: "64 / 84"; a family that is not on the path is a dash. Sizes in tunnels follow."""
    return f"{ipv4 or DASH} / {ipv6 or DASH}" + (f"\n{tunnel} in tunnels" if tunnel else "")


def size_phrase(ipv4: int | None, ipv6: int | None, tunnel: int | None = None) -> str:
    """Frame size in a sentence: "64 / 84 octets"; in tunnels "64-octet IPv4 / 104-octet with outer header"."""
    return named_sizes(ipv4, ipv6, tunnel) if tunnel else f"{size_words(ipv4, ipv6)} octets"


def named_sizes(ipv4: int | None, ipv6: int | None, tunnel: int | None) -> str:
    """Frame size with family in words: "64-octet IPv4 / 84-octet IPv6"."""
    named = ((ipv4, "IPv4"), (ipv6, "IPv6"), (tunnel, "with outer header"))
    return " / ".join(f"{octets}-octet {kind}" for octets, kind in named if octets is not None)


def mix_words(m: int, n: int) -> str:
    """Foreground to background in hundredths: 90:10."""
    share = Fraction(100 * m, n)
    return f"{float(share):g}:{float(100 - share):g}"


def _percent(ratio: str) -> str:
    return f"{float(100 * Fraction(ratio)):g} %"


SIZES = ("frame_size_ipv4", "frame_size_ipv6")
TUNNEL_SIZE = "frame_size_tunnel"
"""Follows from the size of the packet inside; no column where nothing is in tunnels."""
MIX = ("foreground_m", "foreground_n")
CONNECTIONS = "connections"
OFFERED, ONE_WAY = "offered", "one way"
"""A coordinate of figures that are of one direction: nothing was sent in the other."""
LOAD = "load_frames_per_second"
"""The one coordinate that is itself measured where the file says it as a share."""

DIMENSIONS = (
    Dimension(
        (
            Name(
                "direction",
                "",
                "`forward`, `reverse` or `bidirectional`: a figure may be of one direction of a bidirectional run",
            ),
        ),
        "direction",
        phrase="{}",
        numeric=False,
    ),
    Dimension(
        (Name("class", "", "`foreground` or `background`, where the figure is of one of them"),),
        "class",
        phrase="{}",
        numeric=False,
    ),
    Dimension(
        (
            Name(SIZES[0], "octets", "frame size on the side of IPv4; empty without IPv4 on the path"),
            Name(SIZES[1], "octets", "frame size on the side of IPv6; empty without IPv6 on the path"),
            Name(TUNNEL_SIZE, "octets", "frame size with the outer header, where packets are in tunnels", always=False),
        ),
        "IPv4 / IPv6\noctets",
        size_words,
        label="frame size IPv4 / IPv6",
        axis="frame size IPv4 / IPv6, octets with FCS",
        say=size_phrase,
    ),
    Dimension(
        (
            Name(MIX[0], "", "foreground frames of every `foreground_n`"),
            Name(MIX[1], "", "frame i is foreground if and only if i mod n < m"),
        ),
        "fore:back-\nground",
        lambda m, n: mix_words(m, n) if m and n else "",
        "{}",
        label="foreground:background",
    ),
    Dimension(
        (Name(CONNECTIONS, "connections", "number of connections N, stateful gateways only"),),
        "connec-\ntions",
        "{:,}".format,
        "{} connections",
        axis="number of connections",
    ),
    Dimension(
        (Name("alpha", "ratio", "rate of the validation as a share of the rate under test"),),
        "alpha",
        lambda alpha: f"{float(Fraction(alpha)):g}",
    ),
    Dimension(
        (
            Name(
                "loss_tolerance",
                "ratio",
                "highest ratio of frames undelivered that still passed; empty where none may be lost",
            ),
        ),
        "loss\ntolerance",
        _percent,
    ),
    Dimension(
        (Name("frame_timeout_ns", "ns", "a correct frame that arrived later than this did not count as delivered"),),
        "frame\ntimeout",
        format_duration_ns,
        "frames later than {} lost",
    ),
    Dimension(
        (Name(LOAD, "frames/s", "load at which it was measured, where the load is not the figure itself"),),
        "load,\nframes/s",
        "{:,}".format,
        "at {} frames/s",
        axis=f"load, {unit_named('frames/s').title}",
    ),
    Dimension(
        (Name(OFFERED, "", f"`{ONE_WAY}` where such a figure is of a run that sent in no other direction", False),),
        "offered",
    ),
    Dimension((Name("case", "", "case of the conformity", False),), "case"),
    Dimension(
        (Name("domain", "", "number of the MAP domain of that case in the campaign file, from 0", False),), "domain"
    ),
    Dimension((Name("judgement", "", "how that case was judged", False),), "judgement"),
    Dimension((Name("burst_frames", "frames", "frames of each burst of bursty traffic", False),), "burst\nframes"),
    Dimension(
        (Name("clients", "clients", "number of clients of echo requests", False),), "clients", axis="number of clients"
    ),
    Dimension(
        (Name("drawn_frames", "frames", "frames of each trial with repeated four-tuples", False),), "drawn\nframes"
    ),
    Dimension(
        (Name("cores", "", "number of the gateway's cores, if the campaign file names them", False),),
        "cores",
        axis="cores of the gateway",
    ),
    Dimension((Name("domains", always=False),), "domains", axis="number of domains"),
    Dimension((Name("flows", always=False),), "flows", axis="number of flows"),
    Dimension((Name("subscribers", always=False),), "subscribers", axis="customers of the provider's gateway"),
    Dimension((Name("title", always=False),), "title", phrase="{}"),
)
"""All that figures may be measured with, in the order of the columns. Direction and class are those of the figure."""

NAMES = tuple(name for dimension in DIMENSIONS for name in dimension.coordinates)
ORDER: Mapping[str, int] = {name.name: place for place, name in enumerate(NAMES)}

COORDINATES = tuple(name.name for name in NAMES if name.always)
"""Those that each `result.csv` has. A campaign may vary other things, whose names are keys of its file."""


def dimension(name: str) -> Dimension:
    """Return the dimension that a coordinate belongs to; one that is not in the list is written as it is."""
    other = Dimension((Name(name, always=False),), name.replace("_", "\n"), axis=name)
    return next((known for known in DIMENSIONS if name in known.names), other)


def share_of(share: Fraction, whole: str) -> str:
    """Return in words which share of a whole a load is, such as "90% of the line"."""
    return f"{format_ratio(share)} of {whole}"


def ordered(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of coordinates in the order of the list, others last, each once."""
    return tuple(sorted(dict.fromkeys(names), key=lambda name: ORDER.get(name, len(ORDER))))


def is_mixed(place: Place) -> bool:
    """Whether there is background traffic beside the foreground."""
    m, n = (place.get(name) for name in MIX)
    return None not in (m, n) and m != n


def telling(place: Place) -> list[str]:
    """Return the coordinates of a place that say something: without the mix if there is no background."""
    return [name for name in place if name not in MIX or is_mixed(place)]


def place_words(place: Place, names: Iterable[str]) -> list[str]:
    """Return some coordinates of a place in words, in the order of the list, others last."""
    return [said for known in dict.fromkeys(map(dimension, ordered(names))) if (said := known.said(place))]
