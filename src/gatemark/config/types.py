"""Value types of the campaign file: text with units on the outside, integers and exact fractions on the inside.

Each type reads what a person writes, refuses what is wrong with a remedy, and writes itself back so that reading it
again gives the same value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from gatemark.config.reserved import EVERYWHERE
from gatemark.embedded_ipv4 import prefix_faults
from gatemark.units import (
    NANOSECONDS_PER_SECOND,
    LineShare,
    parse_duration,
    parse_rate,
    parse_rate_or_share,
    parse_ratio,
)

MIX_PERIOD_MAX = 65536
FRAMES_PER_SECOND_MAX = 1_000_000_000
CONNECTIONS_MAX = 1 << 40
FLOW_LABEL_MAX = (1 << 20) - 1
"""RFC 6437."""
_OCTET_SCHEMA = {"type": "integer", "minimum": 0, "maximum": 255}
DelayMetric = Literal["latency", "pdv", "ipdv"]
DURATION_MAX_NS = 7 * 24 * 3600 * 10**9
"""One week: the longest phase that the engine takes."""


class BadValueError(ValueError):
    """A value that cannot be accepted: what it is, and what to write instead."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


@dataclass(frozen=True, slots=True)
class Span:
    """An inclusive range of integers: ``2-254``, or one value."""

    minimum: int
    maximum: int

    def __str__(self) -> str:
        return str(self.minimum) if self.minimum == self.maximum else f"{self.minimum}-{self.maximum}"

    @property
    def count(self) -> int:
        """How many values the range holds."""
        return self.maximum - self.minimum + 1


@dataclass(frozen=True, slots=True)
class Mix:
    """Share of foreground: frame i is foreground iff ``i mod n < m`` (RFC 8219 section 5.3)."""

    m: int
    """Foreground frames of every `n`."""
    n: int
    """Length of the pattern, frames."""

    def __str__(self) -> str:
        return f"{self.m}/{self.n}"

    @property
    def has_foreground(self) -> bool:
        """Whether any frame is foreground."""
        return self.m > 0

    @property
    def has_background(self) -> bool:
        """Whether any frame is native IPv6 background."""
        return self.m < self.n


@dataclass(frozen=True, slots=True)
class Written:
    """What the reference calls the values of a type as the file has them: a single one, and several in a list."""

    single: str
    several: str = ""


def read_span(value: object, *, lowest: int, highest: int, example: str) -> Span:
    """Read ``a-b`` or one integer; both ends inclusive and within [lowest, highest]."""
    if isinstance(value, Span):
        return value
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    matched = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", text)
    if matched is None:
        raise BadValueError(f"{value!r} is not a range", f'write the first and last value, for example "{example}"')
    minimum = int(matched.group(1))
    maximum = minimum if matched.group(2) is None else int(matched.group(2))
    for number in (minimum, maximum):
        if number > highest:
            raise BadValueError(
                f"{number} is above {highest}", f'the range is inclusive, write at most "{lowest}-{highest}"'
            )
        if number < lowest:
            raise BadValueError(f"{number} is below {lowest}", f'the range is inclusive, write "{example}"')
    if minimum > maximum:
        raise BadValueError(
            f'the range "{minimum}-{maximum}" is empty', f'write the lower end first: "{maximum}-{minimum}"'
        )
    return Span(minimum, maximum)


def read_mix(value: object) -> Mix:
    """Read ``m/n`` with 0 <= m <= n and n > 0."""
    if isinstance(value, Mix):
        return value
    matched = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", value) if isinstance(value, str) else None
    if matched is None:
        raise BadValueError(
            f"{value!r} is not a share of foreground", 'write m/n, for example "9/10" for 9 of every 10 frames'
        )
    m, n = int(matched.group(1)), int(matched.group(2))
    if n == 0:
        raise BadValueError(f"{value!r} has n = 0", 'n counts the frames of one period, write for example "9/10"')
    if n > MIX_PERIOD_MAX:
        raise BadValueError(f"{value!r} has n above {MIX_PERIOD_MAX}", 'write a shorter period, for example "9/10"')
    if m > n:
        raise BadValueError(f"{value!r} has m > n", f'm of every n frames are foreground, write for example "{n}/{m}"')
    return Mix(m, n)


def write_duration(value: int) -> str:
    """Write nanoseconds exactly, in the largest unit that divides them."""
    for unit, nanoseconds in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if value % nanoseconds == 0:
            return f"{value // nanoseconds}{unit}"
    return f"{value}ns"


def write_ratio(value: Fraction) -> str:
    """Write a ratio exactly: as a percentage if that has an end, else as a fraction."""
    percent = value * 100
    for places in range(30):
        scaled = percent * 10**places
        if scaled.denominator == 1:
            digits = str(scaled.numerator).rjust(places + 1, "0")
            return (f"{digits[:-places]}.{digits[-places:]}" if places else digits) + "%"
    return f"{value.numerator}/{value.denominator}"


def write_rate(value: int | Fraction) -> int | str:
    """Write frames per second as a number, a share of the line rate as a percentage."""
    return value if isinstance(value, int) else write_ratio(value)


def _traffic_classes(value: Any) -> tuple[int, ...]:
    several = isinstance(value, dict) and list(value) == ["by_flow"] and isinstance(value["by_flow"], list | tuple)
    classes = tuple(value["by_flow"]) if several else (value,)
    if any(isinstance(octet, bool) or not isinstance(octet, int) or not 0 <= octet <= 255 for octet in classes):
        raise BadValueError(
            f"{value!r} is not a traffic class", "write 0 to 255, or {by_flow = [0, 184]} to draw one for each flow"
        )
    if several and not 2 <= len(set(classes)) == len(classes):
        raise BadValueError("by_flow lists fewer than two, or one twice", "list each one once, or write one number")
    return classes


def _number_or(word: str, lowest: int, highest: int, *, name: str, meaning: str) -> Callable[[object], int | str]:
    """Return a reader of a number within limits, or of a word in its place."""

    def read(value: object) -> int | str:
        if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest:
            return value
        if value == word:
            return word
        raise BadValueError(f"{value!r} is not a {name}", f'write {lowest} to {highest}, or "{word}" {meaning}')

    return read


def with_remedy(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Turn the message of `gatemark.units` ("...; write ...") into a value and its remedy."""

    def reader(value: Any) -> Any:
        try:
            return read(value)
        except BadValueError:
            raise
        except ValueError as error:
            what, _, fix = str(error).partition("; ")
            raise BadValueError(what, fix) from None

    return reader


def positive(read: Callable[[Any], Any], fix: str) -> Callable[[Any], Any]:
    """Refuse 0, with this remedy."""

    def reader(value: Any) -> Any:
        number = read(value)
        if number == 0:
            raise BadValueError(f"{value!r} is nothing", fix)
        return number

    return reader


def _share_of_line(value: Any) -> int | LineShare:
    rate = parse_rate_or_share(value)
    if isinstance(rate, LineShare) and rate > Fraction(1001, 1000):
        raise BadValueError(f"{value!r} is more than the line can carry", "write at most 100%")
    if not isinstance(rate, LineShare) and rate > FRAMES_PER_SECOND_MAX:
        raise BadValueError(f"{value!r} is above 1G frames/s", "write frames per second, not bit/s")
    return rate


def _duration(value: Any) -> int:
    duration = parse_duration(value)
    if duration > DURATION_MAX_NS:
        raise BadValueError(f"{value!r} is longer than a week", "write a shorter time")
    return duration


def _loss_ratio(value: Any) -> Fraction:
    ratio = parse_ratio(value)
    if not 0 <= ratio < 1:
        raise BadValueError(f"{value!r} is not below 100%", "write a ratio from 0% to below 100%, for example 0.01%")
    return ratio


def _step(value: Any) -> Fraction:
    ratio = parse_ratio(value)
    if not 0 < ratio <= 1:
        raise BadValueError(f"{value!r} is not a step", "write a share of the maximum above 0%, for example 10%")
    return ratio


def _address(value: Any, version: int | None) -> IPv4Address | IPv6Address:
    if isinstance(value, IPv4Address | IPv6Address):
        value = str(value)
    try:
        address = ip_address(value) if isinstance(value, str) else None
    except ValueError:
        address = None
    example = "198.18.0.2" if version == 4 else "2001:2::2"
    if address is None:
        what = f"{value!r} is not an IP{'' if version is None else f'v{version}'} address"
        raise BadValueError(what, f"write for example {example}")
    if version not in (None, address.version):
        raise BadValueError(
            f"{value} is an IPv{address.version} address where IPv{version} is wanted",
            f"move it under ipv{address.version}, or write an IPv{version} address such as {example}",
        )
    if any(address in reserved.prefix for reserved in EVERYWHERE):
        raise BadValueError(
            f"{value} is not a unicast address of a host on a routed network", f"write for example {example}"
        )
    return address


def _network(value: Any, network: type[IPv4Network] | type[IPv6Network], example: str) -> IPv4Network | IPv6Network:
    text = str(value) if isinstance(value, str | IPv4Network | IPv6Network) else ""
    if "/" not in text:
        raise BadValueError(f"{value!r} is not a prefix with its length", f"write for example {example}")
    try:
        return network(text)
    except ValueError as error:
        raise BadValueError(f"{value!r}: {error}", f"write for example {example}") from None


def _any_network(value: Any) -> IPv4Network | IPv6Network:
    text = str(value) if isinstance(value, str | IPv4Network | IPv6Network) else ""
    if "/" not in text and text:
        text += "/128" if ":" in text else "/32"
    return _network(text, IPv6Network if ":" in text else IPv4Network, "198.19.0.1/32")


def _count(value: Any) -> int:
    count = parse_rate(value)
    if count > CONNECTIONS_MAX:
        raise BadValueError(f"{value!r} is above 2^40", "write a smaller number")
    return count


def _phase_one_rate(value: Any) -> int | Fraction:
    rate = parse_rate_or_share(value)
    if isinstance(rate, LineShare):
        return read_share(value)
    if rate > FRAMES_PER_SECOND_MAX:
        raise BadValueError(f"{value!r} is above 1G connections/s", "write a lower rate")
    return rate


def read_share(value: Any) -> Fraction:
    """Read a ratio of at most 1."""
    ratio = parse_ratio(value)
    if ratio > 1:
        raise BadValueError(f"{value!r} is more than 100%", "write a share of at most 100%")
    return ratio


def _shares(value: Any) -> tuple[Fraction, ...]:
    shares = tuple(positive(with_remedy(read_share), A_SHARE)(share) for share in _listed(value))
    if not shares:
        raise BadValueError("[] lists no share", 'write one or several, for example ["100%", "50%"]')
    return shares


def _translation_prefix(value: Any) -> IPv6Network:
    prefix = _network(value, IPv6Network, "2001:2:0:6400::/96")
    assert isinstance(prefix, IPv6Network)
    for what, fix in prefix_faults(prefix):
        raise BadValueError(what, fix)
    return prefix


def _mac(value: Any) -> str:
    text = value.lower() if isinstance(value, str) else ""
    if re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", text) is None:
        raise BadValueError(f"{value!r} is not a MAC address", "write for example 02:00:00:00:00:01")
    if int(text[:2], 16) & 1 or text == "00:00:00:00:00:00":
        raise BadValueError(f"{value!r} is not the address of one station", "write a unicast MAC address")
    return text


def _host(value: Any) -> str:
    example = "write for example root@192.0.2.1, or a name of ~/.ssh/config"
    if not isinstance(value, str) or re.fullmatch(r"[^\s\x00-\x1f\x7f]+", value) is None:
        raise BadValueError(f"{value!r} is not a host for ssh", example)
    if value.startswith("-"):
        raise BadValueError(f"{value!r} begins with -, so ssh would take it for an option", example)
    return value


def _setting(value: Any) -> int | str:
    example = 'write a number or a text, for example 8 or "udp4"'
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise BadValueError(f"{value!r} is not a valid value of a setting", example)
    if "\x00" in str(value):
        raise BadValueError(f"{value!r} holds a character 0, which no command takes", example)
    return value


def _readings(value: Any) -> str | dict[str, str]:
    if isinstance(value, str):
        return value
    named = value if isinstance(value, dict) else {}
    if not named or not all(
        re.search(_NAME_PATTERN, str(name)) and isinstance(command, str) for name, command in named.items()
    ):
        raise BadValueError(
            f"{value!r} is neither one command nor a table of them", 'write for example {unreplied = "cat ..."}'
        )
    return {str(name): command for name, command in named.items()}


def _listed(value: Any) -> Any:
    """Let one value stand for a list of one."""
    return value if isinstance(value, list | tuple) else [value]


def written_as(pattern: str, example: str) -> WithJsonSchema:
    """Say in the schema how a text with a unit is written."""
    return WithJsonSchema({"type": ["string", "integer"], "pattern": pattern, "examples": [example]})


RATE_PATTERN = r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*[kMGT]?\s*$"
RATE_OR_SHARE_PATTERN = r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*([kMGT]|%)?\s*$"
_NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]*$"
_DURATION_PATTERN = r"^\s*(0|[0-9][0-9_]*(\.[0-9]+)?\s*(ns|us|µs|ms|s|min|h))\s*$"
RATIO_PATTERN = r"^\s*(0|1|[0-9]+(\.[0-9]+)?\s*%|[0-9]+/[0-9]+)\s*$"
NEVER_ENDS = "a load of 0 frames/s never ends: write 1 or more"
A_SHARE = "write a share above 0%"

Duration = Annotated[
    int,
    PlainValidator(with_remedy(_duration)),
    PlainSerializer(write_duration),
    written_as(_DURATION_PATTERN, "2s"),
    Written("time", "times"),
]
"""Nanoseconds, 0 allowed."""
PositiveDuration = Annotated[
    int,
    PlainValidator(positive(with_remedy(_duration), "write a time above 0, for example 60s")),
    PlainSerializer(write_duration),
    written_as(_DURATION_PATTERN, "60s"),
    Written("time above 0", "times above 0"),
]
"""Nanoseconds, above 0."""


def _whole_seconds(nanoseconds: int) -> int:
    if nanoseconds % NANOSECONDS_PER_SECOND:
        raise BadValueError("is not a whole number of seconds", "round it up")
    return nanoseconds


WholeSeconds = Annotated[PositiveDuration, AfterValidator(_whole_seconds)]
"""The same in whole seconds."""
BitRate = Annotated[
    int,
    PlainValidator(positive(with_remedy(parse_rate), "write the bit/s of the medium, for example 10G")),
    PlainSerializer(write_rate),
    written_as(RATE_PATTERN, "10G"),
    Written("bit/s", "bit/s"),
]
FrameRate = Annotated[
    int | LineShare,
    PlainValidator(positive(with_remedy(_share_of_line), NEVER_ENDS)),
    PlainSerializer(write_rate),
    written_as(RATE_OR_SHARE_PATTERN, "100k"),
    Written("rate or share", "rates or shares"),
]
"""Frames per second in one direction, or a share of the line rate."""
Count = Annotated[
    int,
    PlainValidator(positive(with_remedy(_count), "write 1 or more, for example 10k")),
    written_as(RATE_PATTERN, "1M"),
    Written("number", "numbers"),
]
"""A number of things, above 0."""
PhaseOneRate = Annotated[
    int | Fraction,
    PlainValidator(positive(with_remedy(_phase_one_rate), "write connections per second, or % of the measured rate")),
    PlainSerializer(write_rate),
    written_as(RATE_OR_SHARE_PATTERN, "50%"),
    Written("rate or share", "rates or shares"),
]
"""Connections per second, or a share of the measured maximum connection establishment rate."""
Share = Annotated[
    Fraction,
    PlainValidator(positive(with_remedy(read_share), A_SHARE)),
    PlainSerializer(write_ratio),
    written_as(RATIO_PATTERN, "50%"),
    Written("share", "shares"),
]
"""A ratio in (0, 1]."""
SharesOrSearch = Annotated[
    tuple[Fraction, ...] | Literal["search"],
    PlainValidator(lambda value: value if value == "search" else _shares(value)),
    PlainSerializer(lambda value: value if value == "search" else [write_ratio(share) for share in value]),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": ["string", "integer"],
                    "pattern": RATIO_PATTERN.replace("(0|1", "(search|1"),
                    "examples": ["50%"],
                },
                {"type": "array", "items": {"type": ["string", "integer"], "pattern": RATIO_PATTERN}, "minItems": 1},
            ]
        }
    ),
    Written('list of shares, or `"search"`'),
]
"""Ratios in (0, 1], one or a list, or ``search`` where gatemark looks for one."""
LossRatio = Annotated[
    Fraction,
    PlainValidator(with_remedy(_loss_ratio)),
    PlainSerializer(write_ratio),
    written_as(RATIO_PATTERN, "0.01%"),
    Written("ratio below 1"),
]
Step = Annotated[
    Fraction,
    PlainValidator(with_remedy(_step)),
    PlainSerializer(write_ratio),
    written_as(RATIO_PATTERN, "10%"),
    Written("ratio above 0"),
]
TrafficClasses = Annotated[
    tuple[int, ...],
    PlainValidator(_traffic_classes),
    PlainSerializer(lambda value: value[0] if len(value) == 1 else {"by_flow": list(value)}),
    WithJsonSchema(
        {
            "anyOf": [
                _OCTET_SCHEMA,
                {
                    "type": "object",
                    "properties": {
                        "by_flow": {"type": "array", "items": _OCTET_SCHEMA, "minItems": 2, "maxItems": 256}
                    },
                    "required": ["by_flow"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
    Written("integer, 0 to 255, or `{by_flow = [...]}`"),
]
"""One traffic class, or several, of which each flow has one."""
FlowLabel = Annotated[
    int | Literal["by_flow"],
    PlainValidator(_number_or("by_flow", 0, FLOW_LABEL_MAX, name="flow label", meaning="to label each flow")),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0, "maximum": FLOW_LABEL_MAX}, {"const": "by_flow"}]}),
    Written('integer, 0 to 1,048,575, or `"by_flow"`'),
]
"""A flow label, or one that each flow has to itself."""
OuterHopLimit = Annotated[
    int | Literal["any"],
    PlainValidator(_number_or("any", 1, 255, name="hop limit", meaning="to compare none")),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 255}, {"const": "any"}]}),
    Written('integer, 1 to 255, or `"any"`'),
]
"""Hop limit of an outer header."""
OuterTrafficClass = Annotated[
    int | Literal["copied"],
    PlainValidator(_number_or("copied", 0, 255, name="traffic class", meaning="for that of the packet inside")),
    WithJsonSchema({"anyOf": [_OCTET_SCHEMA, {"const": "copied"}]}),
    Written('integer, 0 to 255, or `"copied"`'),
]
"""Traffic class of an outer header."""
PortSpan = Annotated[
    Span,
    PlainValidator(lambda value: read_span(value, lowest=1, highest=65535, example="1024-65535")),
    PlainSerializer(str),
    written_as(r"^\s*[0-9]+(\s*-\s*[0-9]+)?\s*$", "1024-65535"),
    Written("range in 1 to 65535"),
]
HostSpan = Annotated[
    Span,
    PlainValidator(lambda value: read_span(value, lowest=0, highest=65535, example="2-254")),
    PlainSerializer(str),
    written_as(r"^\s*[0-9]+(\s*-\s*[0-9]+)?\s*$", "2-254"),
    Written("range in 0 to 65535"),
]
MixValue = Annotated[
    Mix,
    PlainValidator(read_mix),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9]+\s*/\s*[0-9]*[1-9][0-9]*\s*$", "examples": ["9/10"]}),
    Written('`"m/n"`, n up to 65536', '`"m/n"`, n up to 65536'),
]
Ipv4 = Annotated[
    IPv4Address,
    PlainValidator(lambda value: _address(value, 4)),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "format": "ipv4"}),
    Written("IPv4 address"),
]
AnyIp = Annotated[
    IPv4Address | IPv6Address,
    PlainValidator(lambda value: _address(value, None)),
    PlainSerializer(str),
    WithJsonSchema({"type": "string"}),
    Written("IP address"),
]
Ipv6 = Annotated[
    IPv6Address,
    PlainValidator(lambda value: _address(value, 6)),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "format": "ipv6"}),
    Written("IPv6 address"),
]
Ipv4Prefix = Annotated[
    IPv4Network,
    PlainValidator(lambda value: _network(value, IPv4Network, "198.18.0.0/24")),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "examples": ["198.18.0.0/24"]}),
    Written("IPv4 prefix"),
]
Ipv6Prefix = Annotated[
    IPv6Network,
    PlainValidator(lambda value: _network(value, IPv6Network, "2001:2::/120")),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "examples": ["2001:2::/120"]}),
    Written("IPv6 prefix"),
]
IpPrefix = Annotated[
    IPv4Network | IPv6Network,
    PlainValidator(_any_network),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "examples": ["198.19.0.1/32"]}),
    Written("prefix", "prefixes"),
]
TranslationPrefix = Annotated[
    IPv6Network,
    PlainValidator(_translation_prefix),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "examples": ["2001:2:0:6400::/96"]}),
    Written("IPv6 prefix"),
]
MacAddress = Annotated[
    str,
    PlainValidator(_mac),
    WithJsonSchema({"type": "string", "pattern": "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"}),
    Written("MAC address"),
]
SshHost = Annotated[str, PlainValidator(_host), WithJsonSchema({"type": "string", "pattern": r"^[^-\s]\S*$"})]
"""What OpenSSH takes for a host: a name of ~/.ssh/config, user@host, ssh://user@host:port."""
SettingName = Annotated[str, Field(pattern=_NAME_PATTERN)]
"""Name of a setting of the gateway."""
InterfaceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}$")]
"""Name of a network interface at a gateway's host, which a shell takes as one word: at most 15 characters."""
ProcessName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:/+-]{1,15}$")]
"""Name of a process as the kernel keeps it: at most 15 characters."""
SettingValue = Annotated[
    int | str,
    PlainValidator(_setting),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    Written("integer or text", "integers and texts"),
]
"""Its value, which commands take as text."""
AsList = BeforeValidator(_listed)
Readings = Annotated[
    str | dict[str, str],
    PlainValidator(_readings),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "propertyNames": {"pattern": _NAME_PATTERN},
                    "minProperties": 1,
                },
            ]
        }
    ),
    Written("text, or table of texts"),
]
"""A command that prints a setting; several by name where the gateway has several settings for what is one here."""


def write_text(value: object) -> str:
    """Write any value of a campaign for a message."""
    if value is None or value == ():
        return "none"
    if isinstance(value, Fraction):
        return write_ratio(value)
    if isinstance(value, tuple):
        return ", ".join(write_text(item) for item in value)
    ipv4, ipv6 = getattr(value, "ipv4", None), getattr(value, "ipv6", None)
    return f"{ipv4} = {ipv6}" if ipv4 is not None else str(value)
