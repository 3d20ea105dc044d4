"""`gatemark archive DIR`: a result folder as one file that somebody else verifies and measures again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from gatemark.archive.verify import verify_archive
from gatemark.archive.write import write_archive
from gatemark.cli.output import AsJson, print_json
from gatemark.errors import ConfigError
from gatemark.tester import stop_signals

MARKS = {"holds": "ok", "differs": "DIFFERS", "unknown": "unknown"}


def archive(
    folder: Path | None = None, /, *, output: Path | None = None, verify: Path | None = None, as_json: AsJson = False
) -> int:
    """Pack a result folder into one file, with the recipes and commands of its campaign and all checksums.

    The same folder always gives the same file. `gatemark run FILE` repeats the archived measurement.

    Example: gatemark archive results/router-20260131-120000

    Parameters
    ----------
    folder
        Result folder of a campaign or a series, or a folder that holds several, such as that of a demo.
    output
        File to write. An existing file is not overwritten. Default: the folder's name with .tar.gz, beside the folder.
    verify
        Verify this archive instead of writing one: check every checksum, recompute the results from the journals, and
        name the gatemark that wrote it.
    as_json
        Print JSON instead of text: path, octets, files and sha256; with --verify holds, sha256, kind, made_by and
        findings.
    """
    if (folder is None) == (verify is None) or (verify is not None and output is not None):
        raise ConfigError(
            what="needs either a result folder or --verify FILE",
            where="gatemark archive",
            fix="gatemark archive results/NAME, or gatemark archive --verify NAME.tar.gz",
        )
    with stop_signals(resume_hint=None):
        return _make(folder, output, as_json=as_json) if folder is not None else _verify(verify, as_json=as_json)


def _make(folder: Path, output: Path | None, *, as_json: bool) -> int:
    archive = write_archive(folder, output)
    if as_json:
        print_json({**asdict(archive), "path": str(archive.path)})
    else:
        print(f"{archive.path}: {archive.files} files, {archive.octets:,} octets\nSHA-256 {archive.sha256}")
    return 0


def _verify(file: Path | None, *, as_json: bool) -> int:
    assert file is not None, "either a folder or an archive is given"
    verification = verify_archive(file)
    if as_json:
        print_json(verification.to_json())
        return 0 if verification.holds else 1
    print(f"{file}: archive of a {verification.kind}, SHA-256 {verification.sha256}")
    for words in verification.made_by:
        print(words)
    for finding in verification.findings:
        where = f"{finding.where}: " if finding.where else ""
        print(f"{MARKS[finding.outcome]:8} {finding.what:10} {where}{finding.words}")
    print("verified" if verification.holds else "not verified")
    return 0 if verification.holds else 1
