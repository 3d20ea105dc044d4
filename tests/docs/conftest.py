"""What tests of several folders share."""

from tests.unit.quicker import no_wait_for_the_disk, plots_not_rendered

__all__ = ["no_wait_for_the_disk", "plots_not_rendered"]
