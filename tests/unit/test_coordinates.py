"""What figures are measured with: one list of names, units and words."""

from __future__ import annotations

import pytest

from gatemark.results.coordinates import COORDINATES, NAMES, ORDER, Place, dimension, ordered, place_words, telling

PLACE: Place = {
    "direction": "forward",
    "frame_size_ipv4": 64,
    "frame_size_ipv6": None,
    "foreground_m": 9,
    "foreground_n": 10,
    "connections": 4000,
    "alpha": "4/5",
    "loss_tolerance": "1/10000",
    "frame_timeout_ns": 50_000_000,
    "load_frames_per_second": 25_000,
    "map_edges": 100,
    "title": "four cores",
}


def test_a_place_is_told_in_the_order_of_the_list_and_others_last() -> None:
    assert place_words(PLACE, reversed([*PLACE])) == [
        "forward",
        "64 / \u2013 octets",
        "90:10",
        "4,000 connections",
        "alpha 0.8",
        "loss tolerance 0.01 %",
        "frames later than 50ms lost",
        "at 25,000 frames/s",
        "four cores",
        "map edges 100",
    ]


def test_what_a_place_does_not_have_is_not_told() -> None:
    assert place_words({"connections": None, "direction": "reverse"}, ["connections", "direction", "alpha"]) == [
        "reverse"
    ]


@pytest.mark.parametrize(("n", "names"), [(10, ["foreground_m", "foreground_n"]), (9, [])])
def test_a_mix_without_background_is_not_worth_telling(n: int, names: list[str]) -> None:
    assert telling({"foreground_m": 9, "foreground_n": n}) == names


def test_each_name_belongs_to_one_dimension() -> None:
    assert [name for name in COORDINATES if name not in dimension(name).names] == []
    assert ordered(["cores", *reversed(COORDINATES)]) == (*COORDINATES, "cores")
    assert dimension("cores").words({"cores": 2}) == "2"


def test_each_name_is_listed_once() -> None:
    assert len(ORDER) == len(NAMES)


@pytest.mark.parametrize(
    ("name", "is_common"), [("frame_size_tunnel", True), ("alpha", True), ("cores", False), ("map.edges", False)]
)
def test_tables_of_figures_have_a_column_of_what_is_common_to_all(name: str, *, is_common: bool) -> None:
    assert dimension(name).is_common is is_common


def test_label_phrase_and_axis_follow_from_the_heading() -> None:
    drawn, sizes = dimension("drawn_frames"), dimension("frame_size_ipv6")
    assert (drawn.heading, drawn.label, drawn.phrase, drawn.axis) == (
        "drawn\nframes",
        "drawn frames",
        "drawn frames {}",
        "drawn frames",
    )
    assert (sizes.label, sizes.axis) == ("frame size IPv4 / IPv6", "frame size IPv4 / IPv6, octets with FCS")
    assert (dimension("connections").label, dimension("map.edges").axis) == ("connections", "map.edges")
