"""What a folder keeps of the sessions that were begun in it, and what has to be the same when another one goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gatemark.campaign.journal import KeptTrials
from gatemark.config.model import Campaign, CampaignFile
from gatemark.dut.base import Abilities, GatewayDescription
from gatemark.dut.recipe import recipe_sha256
from gatemark.errors import ResultError, TestBedError
from gatemark.files import sha256_of
from gatemark.results import this_machine
from gatemark.results.provenance import (
    MachineFacts,
    Provenance,
    Session,
    changes,
    engine_facts,
    interrupts_moved,
    machine_changes,
    port_fact,
)
from gatemark.results.store import ResultFolder
from gatemark.stored import PROVENANCE, provenance_of
from gatemark.tester import Tester


def begun_provenance(
    folder: ResultFolder,
    tester: Tester,
    gateway: GatewayDescription,
    machine: MachineFacts,
    program_sha256: str,
    *,
    campaign_file: Path,
    resumed: bool,
    name: str = PROVENANCE,
) -> Provenance:
    """Return the provenance at the start of a session, with the earlier sessions that the file `name` has.

    Raises ResultError if machine, engine, ports or the gateway's host are not those of the first session.
    """
    before = provenance_of(folder, name) if resumed else None
    earlier = () if before is None else before.sessions
    with KeptTrials(folder.journal_file) as kept:
        counts = {"trials_before": kept.lines, "trials_removed": kept.removed}
    session = Session(
        **counts,
        started_at=this_machine.now_iso(),
        finished_at=None,
        resumed=resumed,
        machine=machine,
        software=this_machine.software_facts(),
        engine=engine_facts(tester.hello, tester.opened, program_sha256=program_sha256),
        left=port_fact(tester.opened["left"]),
        right=port_fact(tester.opened["right"]),
        gateway_host=gateway.host,
        settings=gateway.settings,
        sampling=gateway.sampling,
        other_gateway_host=gateway.other_host,
    )
    if earlier and (differing := changes(earlier[0], session, makes_ports=tester.campaign.bed.makes_ports)):
        raise _other_equipment(folder, differing)
    return Provenance(
        seed=tester.campaign.seed,
        campaign_sha256=sha256_of(campaign_file),
        recipe_sha256=_recipe_digest(tester.campaign),
        tester_cpus=tester.testbed.placement.tester_cores,
        line_bits_per_second=tester.campaign.line.rate,
        line_rate_source=tester.line_rate_source,
        sessions=(*earlier, session),
    )


def end_provenance(
    folder: ResultFolder, record: Provenance, log: Path, *, moved: tuple[str, ...] = (), name: str = PROVENANCE
) -> Provenance:
    """Write the end of the last session; `log` is the engine's, `moved` are interrupts that moved meanwhile."""
    *earlier, last = record.sessions
    digest = sha256_of(log) if folder.has(log.name) else None
    end = {"finished_at": this_machine.now_iso(), "engine_log_sha256": digest, "interrupts_moved": moved}
    record = record.model_copy(update={"sessions": (*earlier, last.model_copy(update=end))})
    folder.write_text(name, record.to_text())
    return record


def moved_since(described: GatewayDescription, can: Abilities) -> tuple[str, ...]:
    """Say which interrupts of the gateway's host were moved since it was described; nothing if it does not answer."""
    if can.describe_host is None or described.host is None:
        return ()
    with suppress(TestBedError):
        return tuple(interrupts_moved(described.host, can.describe_host()))
    return ()


def check_gateway(folder: ResultFolder, gateway: GatewayDescription) -> None:
    """Keep the gateway's description at the first session and refuse another gateway later.

    Name, version and set-up commands are compared: the configuration text holds counters and addresses that the kernel
    draws again each time.
    """
    now = json.loads(json.dumps(gateway.to_json()))
    if not folder.has(PROVENANCE):
        folder.write_json("gateway.json", now)
        return
    before = folder.read_json("gateway.json")
    keys = ("name", "version", "commands") if gateway.commands else ("name", "version", "configuration")
    changed = [key for key in keys if before.get(key) != now.get(key)]
    if changed:
        raise ResultError(
            what=f"the gateway differs from the one measured before: its {', '.join(changed)} changed",
            where=str(folder.path),
            fix="restore the earlier gateway, or measure this one into a new folder",
        )


def resolved(complete: Campaign) -> dict[str, Any]:
    """The campaign as campaign.json holds it; exactly what reading the file gives back."""
    return json.loads(json.dumps(complete.to_document()))  # type: ignore[no-any-return]


def _recipe_digest(campaign: CampaignFile) -> str | None:
    return None if campaign.testbed.recipe is None else recipe_sha256(campaign.testbed.recipe)


def check_origin(folder: ResultFolder) -> None:
    """Raise ResultError if a folder is a stranger's: it came from another user, another machine or an archive."""
    strangers = folder.written_by_others()
    if strangers:
        origin = f"another user made it or can write to it ({', '.join(strangers)})"
    elif folder.is_unpacked:
        origin = "it was unpacked from an archive"
    elif not folder.was_made_here:
        origin = "it was made on another machine"
    else:
        return
    raise ResultError(
        what=f"{origin}, and it says which ports are opened and which commands run on this machine",
        where=str(folder.path),
        fix="read campaign.toml and its recipe; if you trust them, add --trust-commands",
    )


def check_file(folder: ResultFolder) -> None:
    """Raise ResultError if campaign.toml is not that of the first session."""
    before = provenance_of(folder)
    if before is not None and before.campaign_sha256 != sha256_of(folder.campaign_file):
        raise _changed(folder, "campaign.toml has changed since the folder was made")


def check_machine_and_recipe(folder: ResultFolder, campaign: CampaignFile) -> None:
    """Raise ResultError if machine or recipe are not those of the first session: before a command of the folder runs.

    A recipe is another one if any of its commands is, for example.
    """
    before = provenance_of(folder)
    if before is None:
        return
    if differing := machine_changes(before.sessions[0].machine, this_machine.machine_facts()):
        raise _other_equipment(folder, differing)
    if before.recipe_sha256 != _recipe_digest(campaign):
        raise _changed(folder, f"the recipe {campaign.testbed.recipe} has changed since the folder was made")


def check_campaign(folder: ResultFolder, stored: dict[str, Any], complete: Campaign) -> None:
    """Raise ResultError if a campaign is not `stored`, the one that campaign.json holds."""
    if stored != resolved(complete):
        raise _changed(folder, "campaign.json does not match campaign.toml and the recipe")


def _other_equipment(folder: ResultFolder, differing: Iterable[str]) -> ResultError:
    return ResultError(
        what="machine, engine, ports or the gateway's host are not those of the trials in this folder: "
        + "; ".join(differing),
        where=str(folder.path),
        fix="restore the earlier ones, or measure with these into a new folder",
    )


def _changed(folder: ResultFolder, what: str) -> ResultError:
    return ResultError(
        what=what, where=str(folder.path), fix="undo the change, or measure the new campaign into a new folder"
    )
