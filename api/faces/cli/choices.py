"""Options and choices that several commands take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from api.faces.cli.printing import Format, ReportFormat


class DepthChoice(StrEnum):
    """How far to look."""

    quick = "quick"
    standard = "standard"
    deep = "deep"


class WindowChoice(StrEnum):
    """How far back to look."""

    day = "day"
    week = "week"
    month = "month"
    year = "year"
    all = "all"


Query = Annotated[str, typer.Argument(help="A product or a question, as you would say it.")]
Depth = Annotated[DepthChoice, typer.Option(help="How far to look.")]
About = Annotated[str, typer.Option(help="What it is, to tell it from its namesakes.")]
Since = Annotated[WindowChoice, typer.Option(help="How far back.")]
Limit = Annotated[int | None, typer.Option(help="Items per source at first.", min=1, max=500)]
As = Annotated[Format, typer.Option("--format", help="How to print the answer.")]
Verbose = Annotated[bool, typer.Option(help="Say more on stderr: grades, upstream requests.")]
Dropped = Annotated[bool, typer.Option("--dropped", help="Also list what was dropped and why.")]
Output = Annotated[Path | None, typer.Option(help="Write the answer to a new file.")]
Sample = Annotated[
    bool, typer.Option("--sandbox", help="Ask the sample world: made up, offline, without keys.")
]
Estimate = Annotated[bool, typer.Option("--estimate", help="Print calls and cost, then stop.")]
Sources = Annotated[list[str] | None, typer.Option(help="Only this source; repeatable.")]
ReportAs = Annotated[ReportFormat, typer.Option("--format", help="How to print the answer.")]
