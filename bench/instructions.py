#!/usr/bin/env python3
"""Instructions per frame of the hot path, counted by callgrind and compared with instructions.toml.

Cycles on a shared machine scatter by tens of percent; instructions do not scatter at all. So this is the check that
tells whether a change made the path of a frame more expensive. It does not know caches or branches: `make bench` does.

Both ways fail: more expensive, because speed was lost; cheaper, because the next loss of the same size would go unseen.
`bench/instructions.py --renew` writes what it finds: in the commit that changes it, with the reason in its message.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "build" / "release" / "bench" / "gatemark-instructions"
BASELINE = ROOT / "bench" / "instructions.toml"

TOLERANCE = 0.02
"""Larger changes of a case, as a share of its count, are told. Two runs of one program are equal to the instruction;
this leaves room for a few instructions that move when unrelated code is inlined differently."""


def main() -> int:
    """Count and compare; with --renew count and write. Returns 1 if a case differs."""
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed (scripts/setup installs it)")
        return 0
    made_with, frames = about()
    if "--renew" in sys.argv[1:]:
        BASELINE.write_text(as_toml(made_with, count(frames)), encoding="utf-8")
        print(f"written: {BASELINE.relative_to(ROOT)}")
        return 0
    baseline = tomllib.loads(BASELINE.read_text(encoding="utf-8"))
    if baseline["made_with"] != made_with:
        print(f"skipped: the counts were made with {baseline['made_with']}, this is {made_with}")
        return 0
    return compare(baseline["instructions_per_frame"], count(frames))


def about() -> tuple[str, int]:
    """Return all that a count depends on beside the source, and of how many frames the program tells."""
    compiler, frames = subprocess.run([PROGRAM, "about"], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )[:2]
    valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    # The C library chooses its memcmp by what the CPU can, and so does valgrind what it emulates.
    avx2 = "with" if " avx2 " in Path("/proc/cpuinfo").read_text(encoding="utf-8") else "without"
    return f"{compiler}, {valgrind}, {platform.machine()} {avx2} AVX2", int(frames)


def _output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def count(frames: int) -> dict[str, float]:
    """Return the instructions per frame of each case."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--quiet", "--tool=callgrind", "--collect-atstart=no"]
        done = subprocess.run(
            [*command, f"--callgrind-out-file={folder}/count", PROGRAM], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.exit(f"error: {PROGRAM.name} failed under valgrind:\n{done.stderr}")
        counts = {}
        for path in Path(folder).iterdir():
            text = path.read_text(encoding="utf-8")
            name, total = re.search(r"Client Request: (\w+)", text), re.search(r"^totals: (\d+)", text, re.MULTILINE)
            if name and total:
                counts[name[1]] = round(int(total[1]) / frames, 2)
    return dict(sorted(counts.items()))


def as_toml(made_with: str, counts: dict[str, float]) -> str:
    """Return the file of a count."""
    lines = [
        "# Instructions per frame of the hot path, by callgrind; bench/instructions.py --renew writes it.",
        "# Where anything else than the following made them, they are other numbers, and nothing is compared.",
        f'made_with = "{made_with}"',
        "",
        "[instructions_per_frame]",
        *(f"{name} = {value}" for name, value in counts.items()),
    ]
    return "\n".join(lines) + "\n"


def compare(before: dict[str, float], now: dict[str, float]) -> int:
    """Print every case that differs; return whether any does."""
    wrong = [f"{name}: is not counted any more" for name in before.keys() - now.keys()]
    wrong += [f"{name}: is not in the baseline yet" for name in now.keys() - before.keys()]
    for name in before.keys() & now.keys():
        change = now[name] / before[name] - 1
        if abs(change) > TOLERANCE:
            word = "more expensive" if change > 0 else "cheaper"
            figures = f"{now[name]:.1f} instructions per frame, {before[name]:.1f} before"
            wrong.append(f"{name}: {figures}: {word} by {abs(change):.1%}")
    if wrong:
        print("\n".join(sorted(wrong)))
        print("If that is meant, run bench/instructions.py --renew and say why in the commit.")
        return 1
    print(f"{len(now)} cases, each within {TOLERANCE:.0%} of its baseline")
    return 0


if __name__ == "__main__":
    sys.exit(main())
