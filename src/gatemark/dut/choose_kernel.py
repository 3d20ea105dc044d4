"""Which kernel a recipe's gateway gets: the one that the campaign names, or one that has what the recipe needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatemark.bed_kinds import BED_KINDS
from gatemark.config.recipe import Recipe
from gatemark.config.tables import TestbedModel
from gatemark.dut.gateway_kernel import GatewayKernel, Links
from gatemark.dut.guest_kernel import GUEST_CPUS, GuestKernel
from gatemark.dut.host_kernel import HostKernel
from gatemark.dut.kernel_modules import comes_with_the_kernel, missing_modules
from gatemark.dut.recipe import load_recipe
from gatemark.errors import TestBedError
from gatemark.kernels.store import BUILD_COMMAND, Kernel, kernel_at, kernels

HOST = "host"
"""This machine's kernel, unless it lacks a module of the recipe."""
BUILT = "uml"
"""The newest kernel that was built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKernel:
    """Which kernel a gateway gets, and why."""

    kernel: Kernel | None
    """One that runs as a process; None: this machine's."""
    reason: str
    """Why it is this one."""
    is_named: bool
    """Whether the campaign names it; else it follows from what the recipe needs."""

    @property
    def release(self) -> str | None:
        """What `uname -r` prints in it; None if that is not known before it is started."""
        if self.kernel is None:
            return os.uname().release
        return None if self.kernel.facts is None else self.kernel.facts.release

    def cpus(self, gateway_cores: int) -> int:
        """Return how many CPUs it has for the gateway, which has `gateway_cores` of this machine."""
        return gateway_cores if self.kernel is None else len(GUEST_CPUS)

    def words(self, gateway_cores: int) -> str:
        """Return all of it in a sentence."""
        cpus = self.cpus(gateway_cores)
        if self.kernel is None:
            what = f"this machine's, Linux {self.release}"
        elif self.kernel.facts is None:
            what = f"User-Mode Linux, {self.kernel.program}"
        else:
            what = f"User-Mode Linux {self.release}, made of {self.kernel.facts.source}"
        return f"{what}, {cpus} CPU{'s' if cpus > 1 else ''}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenKernel:
    """How to make the gateway's kernel, and why it is another one than the campaign names."""

    make: Callable[[Links], GatewayKernel]
    reason: str | None = None


HOST_KERNEL = ChosenKernel(make=HostKernel)
"""This machine's, whatever it has."""


def choose_kernel(named: str, recipe: Recipe) -> ChosenKernel:
    """Return the kernel for a recipe; raise TestBedError if there is none that has what it needs."""
    choice = find_kernel(named, recipe)
    kernel = choice.kernel
    if kernel is None:
        return ChosenKernel(make=lambda links: HostKernel(links, recipe.modules))
    return ChosenKernel(
        make=lambda links: GuestKernel(links, kernel, recipe.modules),
        reason=None if choice.is_named else choice.reason,
    )


def kernel_of(testbed: TestbedModel) -> FoundKernel | None:
    """Return which kernel the gateway of a test bed gets; None where no recipe makes it.

    Raises TestBedError if there is none that has what the recipe needs.
    """
    recipe = testbed.recipe if BED_KINDS[testbed.kind].has_kernels else None
    return None if recipe is None else find_kernel(testbed.kernel, load_recipe(recipe))


def find_kernel(named: str, recipe: Recipe) -> FoundKernel:
    """Return which kernel a recipe gets, without loading or starting anything; raise TestBedError if there is none."""
    if named == HOST:
        missing = missing_modules(recipe.modules)
        if not missing:
            return FoundKernel(kernel=None, reason=f"it has all that recipe {recipe.name} needs", is_named=False)
        words = f"this machine's kernel has no {' and no '.join(missing)}"
        return FoundKernel(kernel=_built(words, recipe.modules), reason=words, is_named=False)
    asked = "the campaign asks for it"
    if named == BUILT:
        return FoundKernel(kernel=_built(asked, recipe.modules), reason=asked, is_named=True)
    kernel = kernel_at(Path(named).expanduser().absolute())
    if kernel.facts is not None:  # nobody knows what is built into one of the user's own
        _fitting([kernel], asked, recipe.modules)
    return FoundKernel(kernel=kernel, reason=asked, is_named=True)


def _built(reason: str, modules: Mapping[str, str]) -> Kernel:
    """Return the newest kernel that was built and has the modules that do not come with a kernel."""
    current = [kernel for kernel in kernels() if kernel.is_current]
    if not current:
        raise TestBedError(
            what=f"no separate kernel was built for the gateway ({reason})",
            where="testbed.kernel",
            fix=f"build one with `{BUILD_COMMAND}`, as the user that measures: some minutes, once",
        )
    return _fitting(current, reason, modules)


def _fitting(built: Sequence[Kernel], reason: str, modules: Mapping[str, str]) -> Kernel:
    """Return the first of some kernels that has the modules that do not come with a kernel."""
    others = [name for name, origin in modules.items() if not comes_with_the_kernel(origin)]
    fitting = (kernel for kernel in built if all((kernel.modules / f"{name}.ko").is_file() for name in others))
    kernel = next(fitting, None)
    if kernel is None:
        releases = ", ".join(kernel.facts.release for kernel in built if kernel.facts)
        raise TestBedError(
            what=f"User-Mode Linux {releases} was built without {' and '.join(others)} ({reason})",
            where="testbed.kernel",
            fix=f"build another version with `{BUILD_COMMAND} VERSION`",
        )
    return kernel
