"""`eval --support`: ask a support check about labelled sentences and passages."""

from __future__ import annotations

import json
from pathlib import Path

from api import wiring
from api.errors import UsageError
from api.faces.cli.choices import Format, JudgeChoice
from api.faces.cli.running import run
from api.lab.building import support_checker
from api.lab.supporting import SupportResult, evaluate_support, read_claims


def support_command(file: Path, judge: JudgeChoice, model: str | None, form: Format) -> int:
    """Measure and print; exit code 0."""
    settings = wiring.load_settings()
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"`{file}` cannot be read as UTF-8 text") from None
    if not (claims := read_claims(lines, str(file))):
        raise UsageError(f"`{file}` holds no claims")

    async def work() -> int:
        async with support_checker(settings, judge.value, model) as checker:
            result = await evaluate_support(checker, claims)
        print(json.dumps(result.as_json()) if form is Format.json else _text(result))
        return 0

    return run(work)


def _text(result: SupportResult) -> str:
    shares = (
        ("precision", result.precision), ("recall", result.recall),
        ("unsupported let by", result.let_by), ("kappa", result.kappa),
    )  # fmt: skip
    figures = ", ".join(f"{name} {'-' if n is None else f'{n:.2f}'}" for name, n in shares)
    return (
        f"{result.checker}: {result.claims} claims, {result.supported} supported, "
        f"{result.unanswered} without an answer\n{figures}"
    )
