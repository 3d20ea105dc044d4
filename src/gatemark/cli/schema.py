"""`gatemark schema`: the JSON Schema of the campaign file."""

from __future__ import annotations

from gatemark.campaign.file import schema_text
from gatemark.cli.output import AsJson


def schema(*, as_json: AsJson = False) -> int:
    """Print the JSON Schema of the campaign file.

    Example: gatemark schema > campaign.schema.json

    Parameters
    ----------
    as_json
        Accepted for consistency; the schema is always JSON.
    """
    del as_json
    print(schema_text(), end="")
    return 0
