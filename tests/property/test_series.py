"""What a series derives from any columns is what a slow and obvious oracle says: ratios and scale-up."""

from __future__ import annotations

import itertools
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gatemark.results.quantity import Quantity
from gatemark.series.join import ColumnRows, metrics_of

CORES = (1, 2, 4)
SIZES = (1000, 50_000, 10**6)
DIRECTIONS = ("forward", "reverse")


def quantity(direction: str, connections: int, median: int | None, limited_by: str) -> Quantity:
    return Quantity(
        run=1,
        procedure="throughput",
        name="throughput",
        unit="frames/s",
        better="higher",
        coordinates={"direction": direction, "frame_size_ipv4": 64, "connections": connections},
        repetitions=1,
        median=median,
        p1=median,
        p99=median,
        limited_by=limited_by,  # type: ignore[arg-type]
        is_headline=True,
    )


figures = st.one_of(
    st.none(),  # the column was not measured
    st.tuples(
        st.fixed_dictionaries({direction: st.one_of(st.none(), st.integers(0, 10**9)) for direction in DIRECTIONS}),
        st.sampled_from(["gateway", "gateway", "gateway", "tester", "host", "maximum"]),
    ),
)


@given(st.lists(figures, min_size=9, max_size=9))
def test_every_figure_is_there_once_and_compared_with_the_right_one(
    given_figures: list[tuple[dict[str, int | None], str] | None],
) -> None:
    known: dict[tuple[int, int, str], tuple[int | None, str]] = {}
    columns = []
    for number, ((row, cores), (place, size)) in enumerate(
        itertools.product(enumerate(CORES), enumerate(SIZES)), start=1
    ):
        result = given_figures[number - 1]
        quantities: tuple[Quantity, ...] = ()
        if result is not None:
            medians, limited_by = result
            quantities = tuple(quantity(way, size, medians[way], limited_by) for way in DIRECTIONS)
            known.update({(row, place, way): (medians[way], limited_by) for way in DIRECTIONS})
        columns.append(ColumnRows(number=number, steps=(row, place), cores=cores, quantities=quantities))

    def comparable(row: int, place: int, way: str) -> Fraction | None:
        median, limited_by = known.get((row, place, way), (None, "gateway"))
        return Fraction(median) if median is not None and limited_by == "gateway" else None

    metrics = metrics_of(columns)
    values_of = {}
    for metric in metrics:
        for figure in metric.figures:
            row, place = divmod(figure.column - 1, 3)
            where = {**metric.where, **figure.where}
            way = str(where["direction"])
            assert where == {"direction": way, "frame_size_ipv4": 64, "connections": SIZES[place]}
            values_of[row, place, way] = (figure.median, figure.limited_by)
            now = comparable(row, place, way)
            before = comparable(row, place - 1, way) if place else None
            single = comparable(0, place, way)
            assert figure.ratio_to_previous == (float(now / before) if now is not None and before else None)
            assert figure.scale_up == (float(now / (CORES[row] * single)) if now and single else None)
    assert values_of == known
    assert len({(metric.quantity, tuple(sorted(metric.where.items()))) for metric in metrics}) == len(metrics)
