"""The golden messages: valid by the schema, and written again exactly as they were read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import EngineError
from gatemark.technology import TECHNOLOGIES, TechnologyName
from gatemark.trial.connection_request import (
    establish_request,
    frames_requests,
    use_request,
    validation_request,
)
from gatemark.trial.echo import EchoForm
from gatemark.trial.echo_request import echo_request
from gatemark.trial.form import Tags, TrialForm
from gatemark.trial.report import (
    read_report,
)
from gatemark.trial.request import frames_request, open_request, resolve_requests, trial_request

PROTOCOL = Path(__file__).parents[2] / "protocol"
EXAMPLES = sorted((PROTOCOL / "examples").glob("*.json"))


def schema(name: str) -> dict[str, Any]:
    document_: dict[str, Any] = json.loads((PROTOCOL / f"{name}.schema.json").read_text(encoding="utf-8"))
    return document_


REQUESTS = jsonschema.Draft202012Validator(schema("request"))
ANSWERS = jsonschema.Draft202012Validator(schema("answer"))


def no_float(text: str) -> float:
    raise AssertionError(f"{text} is no integer")


def read(path: Path) -> dict[str, Any]:
    document_: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), parse_float=no_float)
    return document_


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_valid(path: Path) -> None:
    message = read(path)
    validator = REQUESTS if "request" in message else ANSWERS
    validator.validate(message)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_written_again_exactly(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n" == text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_unknown_key_is_refused(path: Path) -> None:
    message = read(path) | {"surprise": 1}
    validator = REQUESTS if "request" in message else ANSWERS
    assert not validator.is_valid(message)


@pytest.mark.parametrize("direction", ["request", "answer"])
def test_every_kind_has_an_example(direction: str) -> None:
    kinds = {reference["$ref"].rpartition("/")[2] for reference in schema(direction)["oneOf"]}
    stems = {path.stem for path in EXAMPLES}
    special = {"progress": "trial_progress"}
    assert {special.get(kind, f"{kind}_{direction}") for kind in kinds} <= stems


@pytest.mark.parametrize("name", ["trial", "trial_establish", "trial_echo"])
def test_the_report_of_a_trial_is_read_and_written_exactly(name: str) -> None:
    answer = read(PROTOCOL / "examples" / f"{name}_answer.json")
    facts = {key: value for key, value in answer.items() if key not in ("answer", "id")}
    assert read_report(answer).model_dump(mode="json") == facts


def test_a_counter_that_has_no_field_is_an_error_that_names_it() -> None:
    answer = read(PROTOCOL / "examples" / "trial_answer.json")
    answer["directions"][0]["foreground"]["surprise"] = 1
    with pytest.raises(EngineError, match=r"directions\.0\.foreground\.surprise"):
        read_report(answer)


def campaign_of(technology: str, mix: str, *, kind: str = "loopback") -> Campaign:
    gateway: dict[str, Any] = {"technology": technology}
    if technology in ("siit64", "siit46"):
        gateway |= {
            "prefix": "2001:2:0:6400::/96",
            "eam": [
                {"ipv4": "198.18.0.0/24", "ipv6": "2001:2::/120"},
                {"ipv4": "198.19.0.0/24", "ipv6": "2001:2:0:8000::/120"},
            ],
        }
    sides: dict[str, Any] = {"left": {"vlan": 5}}
    traffic = {"mix": mix, "direction": ["bidirectional", "forward", "reverse"]}
    return complete_campaign(
        campaign_from_dict({"gateway": gateway, "testbed": {"kind": kind}, "traffic": traffic, **sides})
    )


@pytest.mark.parametrize("technology", ["router44", "router66", "siit64", "siit46"])
@pytest.mark.parametrize("mix", ["1/1", "9/10", "0/1"])
def test_what_the_package_asks_is_valid(technology: str, mix: str) -> None:
    campaign = campaign_of(technology, mix)
    bodies = [open_request(campaign, []), *resolve_requests(campaign)]
    for cell in cells_of(campaign):
        bodies.append(trial_request(campaign, cell, frames_per_second=1, duration_ns=1, trial_number=1))
        bodies.append(frames_request(campaign, cell, count=3))
    for body in bodies:
        REQUESTS.validate({**body, "id": 1})


@pytest.mark.parametrize("technology", ["router44", "router66", "siit64"])
@pytest.mark.parametrize("pace_ns", [10_000_000, None])
def test_what_the_package_asks_for_echo_requests_is_valid(technology: str, pace_ns: int | None) -> None:
    campaign = campaign_of(technology, "1/1")
    form = TrialForm(
        echo=EchoForm(
            clients=8, window=4, count=11, destinations=2048, pace_without_reply_ns=pace_ns, timeout_ns=10**9
        ),
        drain_ns=10**9,
    )
    body = echo_request(
        campaign, cells_of(campaign)[0], frames_per_second=1000, duration_ns=10**9, trial_number=1, form=form
    )
    REQUESTS.validate({**body, "id": 1})


def stateful(technology: TechnologyName, **tables: Any) -> Campaign:
    """A stateful gateway between 198.18.0.2 or 2001:2::2 and hosts of 198.19.0.0 or 2001:2:0:8000::."""
    inside, outside = TECHNOLOGIES[technology].families
    hosts = {"mode": "pseudorandom", "range": "2-6"}
    left = {
        "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"},
        "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
    }
    right = {
        "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1", "hosts": {"offset": 2, **hosts}},
        "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1", "hosts": {"offset": 14, **hosts}},
    }
    gateway: dict[str, Any] = {
        "technology": technology,
        "pool": ["198.19.0.1" if outside == "ipv4" else "2001:2:0:8000::1"],
        "control": {"clear_state": "conntrack -F"},
    }
    if inside != outside:
        gateway |= {"prefix": "2001:2:0:6400::/96", "hop_limit_decrement": 2, "zero_udp_checksum": True}
    return complete_campaign(
        campaign_from_dict(
            {
                "seed": 42,
                "gateway": gateway,
                "testbed": {"kind": "ports"},
                "left": {"port": "af_packet:gm0-left", inside: left[inside]},
                "right": {"port": "af_packet:gm0-right", outside: right[outside]},
                "connections": {"count": "1M", "rate": "100k"},
                "traffic": {"frame_sizes": {"family": "ipv4" if "ipv4" in (inside, outside) else "ipv6", "octets": 84}},
                "throughput": {"maximum": "1M"},
                **tables,
            }
        )
    )


@pytest.mark.parametrize("technology", ["nat44", "nat64", "nat66"])
def test_what_the_package_asks_of_connections_is_valid(technology: TechnologyName) -> None:
    campaign = stateful(technology)
    (cell,) = cells_of(campaign)
    numbers: dict[str, Any] = {"connections": 1_000_000, "trial_number": 16}
    bodies = [
        establish_request(campaign, cell, connections_per_second=1000, **numbers),
        use_request(campaign, cell, frames_per_second=1, duration_ns=1, **numbers),
        validation_request(campaign, cell, connections_per_second=1000, **numbers),
        *frames_requests(campaign, cell, count=3),
    ]
    for body in bodies:
        REQUESTS.validate({**body, "id": 1})


def test_the_golden_phase_1_is_what_the_package_asks() -> None:
    campaign = stateful("nat64", traffic={"frame_sizes": {"family": "ipv4", "octets": 64}})
    (cell,) = cells_of(campaign)
    asked = establish_request(campaign, cell, connections=10**6, connections_per_second=100_000, trial_number=192)
    golden = read(PROTOCOL / "examples" / "trial_establish_request.json")
    assert {**asked, "id": golden["id"]} == golden


@pytest.mark.parametrize("name", ["open", "resolve", "trial", "frames"])
def test_the_golden_requests_are_what_the_package_asks(name: str) -> None:
    hosts = {"mode": "pseudorandom", "range": "2-254"}
    left = {"address": "2001:2::2", "gateway": "2001:2::1", "hosts": {"offset": 14, **hosts}}
    right = {"address": "198.19.0.2", "gateway": "198.19.0.1", "hosts": {"offset": 2, **hosts}}
    campaign = complete_campaign(
        campaign_from_dict(
            {
                "seed": 42,
                "gateway": {
                    "technology": "siit64",
                    "prefix": "2001:2:0:6400::/96",
                    "eam": [{"ipv4": "198.18.0.0/24", "ipv6": "2001:2::/120"}],
                    "hop_limit_decrement": 3,
                },
                "testbed": {"kind": "ports"},
                "left": {"port": "af_packet:gm0-left", "ipv6": left},
                "right": {
                    "port": "af_packet:gm0-right",
                    "vlan": 100,
                    "gateway_mac": "02:00:00:00:00:01",
                    "ipv4": right,
                    "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
                },
                "traffic": {"mix": "9/10", "frame_sizes": {"family": "ipv4", "octets": 64}},
            }
        )
    )
    (cell,) = cells_of(campaign)
    asked = {
        "open": open_request(campaign, [1]),
        "resolve": resolve_requests(campaign)[0],
        "trial": trial_request(
            campaign,
            cell,
            frames_per_second=10**6,
            duration_ns=60 * 10**9,
            trial_number=12,
            form=TrialForm(tags=Tags(first_ns=30 * 10**9, count=50_000), variation=True, histogram=True),
        ),
        "frames": frames_request(campaign, cell, count=2),
    }[name]
    golden = read(PROTOCOL / "examples" / f"{name}_request.json")
    assert {**asked, "id": golden["id"]} == golden
