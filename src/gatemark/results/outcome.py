"""How a trial ended in which the gateway has to recover from an overload or from a reset."""

from __future__ import annotations

from typing import Literal

Outcome = Literal["recovered", "not_recovered", "no_loss", "unknown"]
"""For one class of frames in one direction. ``not_recovered``: frames were lost up to the end of the observation.
``no_loss``: no frame was lost where frames had to be lost, so there was nothing to recover from. ``unknown``: frames
came back faulty or late; their place in the trial is not recorded, so the time is not known."""
