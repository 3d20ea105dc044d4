"""What tests of several folders share."""

from tests.unit.quicker import no_wait_for_the_disk, plots_not_rendered, pytest_configure, templates_compiled_once

__all__ = ["no_wait_for_the_disk", "plots_not_rendered", "pytest_configure", "templates_compiled_once"]
