"""What `watch add` and `watch change` take; see `requests`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from api.choices import MAX_DATED_NOTES, MAX_RECEIVERS, Only
from api.features.watches.watch_run import NEWS
from api.interfaces.shared.requests import (
    AskOptions,
    CliOption,
    ExcludeOptions,
    Label,
    RequestBody,
    SourceNames,
    SubjectOptions,
)


class WatchOptions(ExcludeOptions, AskOptions, SubjectOptions):
    """The sources, schedule and receivers of a watch, beside its question."""

    sources: SourceNames = ()
    every: Annotated[
        str,
        Label(
            "When to look",
            "such as mon 08:00 · mon,thu 08:00 · daily 08:00 · hourly · every 15 min",
            suggestions=("mon 08:00", "mon,thu 08:00", "daily 08:00", "hourly", "every 15 min"),
        ),
        Field(
            description="When it runs: `mon,thu 08:00`, `daily 08:00`, `hourly` or `every 15 min`.",
            max_length=60,
        ),
    ] = "mon 08:00"
    tz: Annotated[
        str,
        Label(
            "Time zone",
            "such as Europe/Berlin, America/New_York, UTC",
            suggestions=(
                "UTC",
                "Europe/London",
                "Europe/Berlin",
                "America/New_York",
                "America/Los_Angeles",
                "Asia/Kolkata",
                "Asia/Tokyo",
                "Australia/Sydney",
            ),
        ),
        Field(
            description="Time zone of the schedule: an IANA name such as `Europe/Berlin`.",
            max_length=60,
        ),
    ] = "UTC"
    only: Annotated[
        Only | None,
        Label("What counts as news", words=tuple((only or "", kind.label) for only, kind in NEWS.items())),
        Field(
            description="Count only complaints as news (default: everything new or unusual).",
        ),
    ] = None
    name: Annotated[
        str,
        Label("Name of the watch", "empty: the question"),
        Field(
            description="Name of the watch (default: its query).",
            max_length=100,
        ),
    ] = ""
    notes: Annotated[
        tuple[Annotated[str, Field(max_length=200)], ...],
        Label("Notes", "a day and what happened, one a line, such as 2026-11-20 Version 2.1: a mark in its picture"),
        CliOption("--note"),
        Field(
            description="What happened on a day, a release for example, marked in its picture over time: "
            "`2026-11-20 Version 2.1`.",
            max_length=MAX_DATED_NOTES,
        ),
    ] = ()


class WatchRequest(WatchOptions):
    """What to watch, when, and who is notified."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "plaud.ai", "every": "mon 08:00", "tz": "Europe/Berlin"}]}
    )
    notify: Annotated[
        tuple[Annotated[str, Field(max_length=2_000)], ...],
        Field(
            description="Receivers of notifications: `https://...`, `slack:https://...` (also `discord:`, `teams:`, "
            "`telegram:`, `ntfy:`) or `mailto:ann@example.org`; on the command line also `file:PATH`. A rule may "
            "follow each: `only complaints` or `only unusual`, and `digest 08:00` or `digest mon 08:00`.",
            max_length=MAX_RECEIVERS,
        ),
    ] = ()
    as_it_happens: Annotated[
        bool,
        Label(
            "Notify as it happens",
            "posts of Bluesky, of followed feeds and articles of News as they come, beside the schedule",
        ),
        Field(
            description="Notify of posts of Bluesky within seconds, of followed feeds and (`NEWS=on`) articles as they "
            "are read, at most 12 times an hour, beside the schedule; needs `listenpost listen`, or a server (Bluesky: "
            "`BLUESKY=on`).",
        ),
    ] = False
    tell_first: Annotated[
        bool,
        Label(
            "Tell of the first run, too",
            "later runs are compared with it, so nothing in it is news",
        ),
        Field(description="Notify about the first run, too."),
    ] = False


def _optional(model: type[BaseModel]) -> dict[str, Any]:
    """Every field of a model with its description, and None where it is not sent."""
    hints = get_type_hints(model, include_extras=True)
    return {
        name: (Annotated[hints[name] | None, Field(description=field.description)], None)
        for name, field in model.model_fields.items()
        if name != "sandbox"  # what is seen in the sample data is no past of real posts
    }


if TYPE_CHECKING:

    class WatchPatch(WatchRequest):
        """What to change of a watch; a field that was not sent is None."""

        paused: bool | None

else:
    WatchPatch = create_model(
        "WatchPatch",
        __base__=RequestBody,
        __doc__="What to change: what is left out, or null, stays. A null `only` or `limit` and an "
        "empty list of `sources` or `notify` take it away.",
        paused=(
            Annotated[bool | None, Field(description="Stop running on schedule, or go on.")],
            None,
        ),
        **_optional(WatchRequest),
    )
    WatchPatch.model_config["json_schema_extra"] = {"examples": [{"paused": True}]}
