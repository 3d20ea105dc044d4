"""What the gateway's host says about itself: kernel, CPUs, clock, memory, network cards. Read once, nothing is changed.

What a host does not tell is None. Linux tells all of it, the BSDs kernel, CPUs and the time of the boot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from gatemark.dut.shell import Run
from gatemark.facts import Facts, GatewayHostFacts, InterfaceFacts, InterruptFacts
from gatemark.harmless import whole_number

SCRIPT = r"""
say() { [ -z "$2" ] || printf '%s\t%s\n' "$1" "$2"; }
known() { sysctl -n "$@" 2> /dev/null; }
joined() { tr '\n' ' ' | sed 's/ *$//'; }
say host_name "$(uname -n)"
say interrupt_cpus "$(sed -n '1s/^ *//p' /proc/interrupts 2> /dev/null)"
say kernel "$(uname -srm)"
say command_line "$(cat /proc/cmdline 2> /dev/null)"
say boot_id "$(cat /proc/sys/kernel/random/boot_id 2> /dev/null || known kern.boottime)"
model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2> /dev/null | head -n 1)
say cpu_model "${model:-$(known hw.model)}"
say cpus_online "$(getconf _NPROCESSORS_ONLN 2> /dev/null || known hw.ncpuonline || known hw.ncpu)"
say cpu_list "$(cat /sys/devices/system/cpu/online 2> /dev/null)"
say governor "$(cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2> /dev/null | sort -u | joined)"
mhz=$(sed -n 's/^cpu MHz[^:]*: *\([0-9]*\).*/\1/p' /proc/cpuinfo 2> /dev/null | sort -n)
say mhz_min "$(printf '%s\n' "$mhz" | head -n 1)"
say mhz_max "$(printf '%s\n' "$mhz" | tail -n 1)"
memory() { sed -n "s/^$1: *\([0-9]*\) kB/\1/p" /proc/meminfo 2> /dev/null; }
say memory_kilobytes "$(memory MemTotal)"
say available_kilobytes "$(memory MemAvailable)"
say numa_nodes "$(ls -d /sys/devices/system/node/node[0-9]* 2> /dev/null | wc -l | tr -d ' ')"
for device in /sys/class/net/*/device; do
  [ -e "$device" ] || continue
  folder=${device%/device}
  name=${folder##*/}
  say interface "$name"
  driver=$(readlink "$device/driver" 2> /dev/null) || driver=
  say driver "${driver##*/}"
  say numa_node "$(cat "$device/numa_node" 2> /dev/null)"
  say rx_queues "$(ls -d "$folder"/queues/rx-* 2> /dev/null | wc -l | tr -d ' ')"
  say tx_queues "$(ls -d "$folder"/queues/tx-* 2> /dev/null | wc -l | tr -d ' ')"
  for family in udp4 udp6; do
    say "rss_$family" "$(ethtool -n "$name" rx-flow-hash $family 2> /dev/null | sed '1d;/^$/d' | joined)"
  done
  for interrupt in "$device"/msi_irqs/* "$device"/../virtio*/../msi_irqs/*; do
    number=${interrupt##*/}
    line=$(sed -n "s/^ *$number: *//p" /proc/interrupts 2> /dev/null) || line=
    [ -n "$line" ] || continue
    for which in effective_affinity_list smp_affinity_list; do
      say "$which" "$number $(cat "/proc/irq/$number/$which" 2> /dev/null)"
    done
    say interrupt "$number $line"
  done
done
"""
"""Prints a key and a value a line; keys after `interface` belong to that one, as often as it has interrupts."""

SECONDS_MAX = 30.0
INTERRUPT_KEYS = ("effective_affinity_list", "smp_affinity_list", "interrupt")
"""What is printed of each interrupt: its number, then CPUs or the rest of its line in `/proc/interrupts`."""


def read_host_description(run: Run) -> GatewayHostFacts:
    """Read the description; raise TestBedError if the host cannot be asked."""
    return description_of(run(SCRIPT, where="gateway.control.host", seconds_max=SECONDS_MAX))


def description_of(output: str) -> GatewayHostFacts:
    """Return what the output of the script says."""
    about_host: dict[str, str] = {}
    cards: list[dict[str, str]] = []
    of_interrupts: list[dict[str, dict[int, str]]] = []
    for line in output.splitlines():
        key, _, value = line.partition("\t")
        if key == "interface":
            cards.append({})
            of_interrupts.append({})
        if key in INTERRUPT_KEYS and cards:
            number, _, rest = value.partition(" ")
            if (known := whole_number(number)) is not None:
                of_interrupts[-1].setdefault(key, {})[known] = rest.strip()
        else:
            (cards[-1] if cards else about_host)[key] = value.strip()
    columns = [whole_number(name.removeprefix("CPU")) for name in about_host.get("interrupt_cpus", "").split()]
    cpus = [number for number in columns if number is not None]
    interfaces = tuple(
        InterfaceFacts(**_typed(card, InterfaceFacts), interrupts=tuple(_interrupts(said, cpus)))
        for card, said in zip(cards, of_interrupts, strict=True)
    )
    return GatewayHostFacts(**_typed(about_host, GatewayHostFacts), interfaces=interfaces)


def _interrupts(said: Mapping[str, Mapping[int, str]], cpus: Sequence[int]) -> Iterator[InterruptFacts]:
    """Yield the interrupts of a card; `cpus` are those of the columns of `/proc/interrupts`."""
    for number, line in sorted(said.get("interrupt", {}).items()):
        counts, words = [whole_number(count) for count in line.split()[: len(cpus)]], line.split()[len(cpus) :]
        if not words or None in counts:
            continue
        taken = {cpu: count for cpu, count in zip(cpus, counts, strict=True) if count}
        serving, allowed = (said.get(key, {}).get(number) or None for key in INTERRUPT_KEYS[:2])
        yield InterruptFacts(number=number, name=words[-1], cpus=serving, allowed_cpus=allowed, taken=taken)


def _typed(values: Mapping[str, str], kind: type[Facts]) -> dict[str, Any]:
    """Return the values that a class has fields for; one that is no number where one is wanted is left out."""
    typed: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        value = values.get(name)
        if value is None:
            continue
        if int not in get_args(field.annotation):
            typed[name] = value
        elif (number := whole_number(value)) is not None:
            typed[name] = number
    return typed
