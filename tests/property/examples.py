"""How many examples of a property are tried: few before each commit, many in `make endure`."""

from hypothesis import settings
from tests.conftest import EXAMPLES


def examples(few: int, *, many: int) -> settings:
    """Return the decorator of a property; the profile of long versions has many examples (`tests/conftest.py`)."""
    return settings(max_examples=many if settings().max_examples > EXAMPLES else few, deadline=None)
