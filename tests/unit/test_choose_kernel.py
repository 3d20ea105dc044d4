"""The kernel of a gateway: this machine's, one of its own where that lacks a module, or what the file names."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.recipe import Recipe
from gatemark.doctor import check_kernel, check_tools
from gatemark.dut import choose_kernel as chosen
from gatemark.dut import gateway_kernel, kernel_modules
from gatemark.dut.gateway_kernel import Links
from gatemark.dut.guest_kernel import GuestKernel
from gatemark.dut.host_kernel import HostKernel
from gatemark.dut.kernel_modules import missing_modules
from gatemark.dut.naming import BedName
from gatemark.dut.recipe import load_recipe
from gatemark.dut.steering import CorePlan
from gatemark.errors import ConfigError, TestBedError
from gatemark.kernels import store

LINKS = Links(
    name=BedName(pid=1, start_ticks=2, number=3),
    mtus={"left": 1500, "right": 9236},
    cores=CorePlan(tester=(3,), gateway=(0, 2)),
)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels with one in it; return its program."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = store.kernels_folder() / "7.3"
    (folder / "modules").mkdir(parents=True)
    (folder / "modules" / "jool.ko").write_bytes(b"\0depends=\0")
    (folder / "linux").write_text("")
    (folder / "linux").chmod(0o755)
    digest = store.configuration_digest()
    facts = store.KernelFacts(version="7.3", release="7.3.4", source="s", jool=None, configuration=digest)
    store.write_facts(folder, facts)
    return folder / "linux"


def needing(modules: dict[str, str]) -> Recipe:
    return load_recipe("linux-router4").model_copy(update={"modules": modules})


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose kernel has CONFIG_TUN and nothing else, and loads nothing; return the folder of its modules."""
    loaded = tmp_path / "module"
    loaded.mkdir()
    monkeypatch.setattr(kernel_modules, "MODULES", loaded)
    monkeypatch.setattr(kernel_modules, "kernel_options", lambda: frozenset({"CONFIG_TUN=y", "CONFIG_NF_NAT=m"}))
    monkeypatch.setattr(kernel_modules, "try_command", lambda command: None)
    return loaded


def test_modules_that_are_missing_are_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"tun": "CONFIG_TUN", "nf-nat": "CONFIG_NF_NAT", "jool": "jool-dkms"}
    assert missing_modules(wanted) == ["nf-nat", "jool"]
    (machine / "nf_nat").mkdir()
    assert missing_modules(wanted) == ["jool"]
    monkeypatch.setattr(kernel_modules, "try_command", lambda command: "")  # modprobe says that it can be loaded
    assert missing_modules(wanted) == []


def test_a_kernel_that_tells_nothing_is_believed_to_have_its_own_modules(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_modules, "kernel_options", lambda: None)
    assert missing_modules({"nf-nat": "CONFIG_NF_NAT", "jool": "jool-dkms"}) == ["jool"]


def test_this_machines_kernel_is_taken_where_it_has_all_modules(machine: Path, built: Path) -> None:
    choice = chosen.choose_kernel("host", needing({"tun": "CONFIG_TUN"}))
    assert isinstance(choice.make(LINKS), HostKernel)
    assert choice.reason is None


def test_a_kernel_of_its_own_is_taken_where_a_module_is_missing(machine: Path, built: Path) -> None:
    choice = chosen.choose_kernel("host", needing({"jool": "jool-dkms"}))
    kernel = choice.make(LINKS)
    assert isinstance(kernel, GuestKernel)
    assert kernel.release == "in User-Mode Linux 7.3.4"
    assert choice.reason == "this machine's kernel has no jool"


def test_a_kernel_without_the_module_is_not_taken(
    machine: Path, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (built.parent / "modules" / "jool.ko").unlink()
    recipe = needing({"jool": "jool-dkms", "tun": "CONFIG_TUN"})
    for named in ("host", "uml", str(built)):
        with pytest.raises(TestBedError, match=r"User-Mode Linux 7\.3\.4 was built without jool") as caught:
            chosen.choose_kernel(named, recipe)
        assert "gatemark kernel build VERSION" in caught.value.fix
    older = store.kernels_folder() / "7.2"
    shutil.copytree(built.parent, older)
    facts = json.loads((older / store.FACTS_FILE).read_text())
    (older / store.FACTS_FILE).write_text(json.dumps({**facts, "version": "7.2", "release": "7.2.1"}))
    (older / "modules" / "jool.ko").touch()
    assert chosen.find_kernel("uml", recipe).release == "7.2.1"
    assert chosen.find_kernel("uml", needing({})).release == "7.3.4", "the newest where any will do"


def test_what_was_found_is_told_in_a_sentence(machine: Path, built: Path) -> None:
    here = chosen.find_kernel("host", needing({"tun": "CONFIG_TUN"}))
    release = os.uname().release
    assert here.words(3) == f"this machine's, Linux {release}, 3 CPUs: it has all that recipe linux-router4 needs"
    guest = chosen.find_kernel("host", needing({"jool": "jool-dkms"}))
    assert guest.words(3) == "User-Mode Linux 7.3.4, made of s, 1 CPU: this machine's kernel has no jool"
    assert chosen.find_kernel("uml", needing({})).words(3).endswith(", 1 CPU: the campaign asks for it")
    users = built.parent / "mine"
    shutil.copy(built, users)
    of_user = chosen.find_kernel(str(users), needing({"jool": "jool-dkms"}))
    assert of_user.release is None
    assert of_user.words(1) == f"User-Mode Linux, {users}, 1 CPU: the campaign asks for it"


def test_modules_are_loaded_when_the_test_bed_is_made_and_not_before(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[list[str]] = []

    def modprobe(command: list[str]) -> str:
        loaded.append([word for word in command if not word.startswith("--")])
        return ""

    monkeypatch.setattr(kernel_modules, "try_command", modprobe)
    kernel = chosen.choose_kernel("host", needing({"jool": "jool-dkms"})).make(LINKS)
    assert isinstance(kernel, HostKernel)
    loaded.clear()
    monkeypatch.setattr(gateway_kernel, "run_command", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kernel.open({})
    assert loaded == [["modprobe", "jool"]]


def test_without_a_kernel_the_remedy_is_told(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    for named, recipe in (("host", needing({"jool": "jool-dkms"})), ("uml", needing({}))):
        with pytest.raises(TestBedError, match="no separate kernel was built for the gateway") as caught:
            chosen.choose_kernel(named, recipe)
        assert "gatemark kernel build" in caught.value.fix


def test_the_kernel_that_is_named_is_taken(machine: Path, built: Path, tmp_path: Path) -> None:
    assert chosen.choose_kernel("uml", needing({})).make(LINKS).process is not None
    users = tmp_path / "linux"
    users.write_text("")
    users.chmod(0o755)
    process = chosen.choose_kernel(str(users), needing({})).make(LINKS).process
    assert process is not None and "the user's own" in process.words


def test_the_guest_gets_its_taps_cores_and_memory(built: Path) -> None:
    kernel = chosen.choose_kernel("uml", needing({})).make(LINKS)
    assert isinstance(kernel, GuestKernel)
    command = kernel._first_process()
    assert command[:3] == ["taskset", "--cpu-list", "0,2"]
    assert str(built) in command
    left, right = (word for word in command if word.startswith("vec"))
    tap = LINKS.tester_end("left")
    assert left == f"vec0:transport=tap,ifname={tap},mac=02:00:00:00:02:01,depth=64,mtu=1500"
    assert right.endswith("mtu=9236")
    assert len(tap) <= 15


def test_a_guest_knows_where_modules_and_rules_of_its_own_are(built: Path) -> None:
    recipe = needing({"tun": "CONFIG_TUN", "jool": "jool-dkms"})
    kernel = chosen.choose_kernel("uml", recipe).make(LINKS)
    assert isinstance(kernel, GuestKernel)
    *_, depmod, load = kernel._module_commands()
    assert depmod.startswith("depmod -b /run/") and load == "modprobe jool"
    assert any(f"{built.parent}/modules/*.ko" in command for command in kernel._module_commands())
    variables = dict(line.split("=", 1) for line in kernel._environment())
    assert variables["XTABLES_LIBDIR"].endswith(f":{built.parent}/xtables")
    assert variables["MODPROBE_OPTIONS"] == f"'-d {depmod.split()[2]}'"
    without = chosen.choose_kernel("uml", needing({"tun": "CONFIG_TUN"})).make(LINKS)
    assert isinstance(without, GuestKernel)
    assert without._module_commands() == []


def test_only_a_gateway_of_a_recipe_may_have_a_kernel_of_its_own() -> None:
    with pytest.raises(ConfigError, match=r"testbed\.kernel: does not apply to kind = loopback"):
        campaign_from_dict({"testbed": {"kind": "loopback", "kernel": "uml"}})


def test_tools_that_come_with_the_kernel_need_not_be_installed(machine: Path, built: Path) -> None:
    campaign = campaign_from_dict({"testbed": {"kind": "netns", "recipe": "jool-nat64"}, "connections": {"count": 1}})
    lacking = [finding.observed for finding in check_tools(campaign) if finding.status == "failed"]
    if shutil.which("jool") is None:
        assert "jool is not installed" in lacking
    tools = built.parent / "bin"
    tools.mkdir()
    (tools / "jool").write_text("")
    (tools / "jool").chmod(0o755)
    assert not [said for said in (finding.observed for finding in check_tools(campaign)) if said.startswith("jool is")]
    (kernel,) = check_kernel(campaign)
    assert (kernel.status, kernel.observed.split(",")[0]) == ("ok", "User-Mode Linux 7.3.4")
    (there,) = check_kernel(None)
    assert there.observed.endswith("for gateways User-Mode Linux 7.3.4")
