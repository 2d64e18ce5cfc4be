"""The command line: its commands, their options, and how a command ends.

A command is a function of the modules beside this one, with its own options as parameters. Where
its first parameter is a request (`api.interfaces.shared.requests`), every field of that model is an
option too. Options are made when a command runs or is explained: the models load only then.

Data goes to stdout, progress and warnings to stderr. Exit codes: 0 answered, 2 usage or
configuration, 3 too little or unclear, 4 no source could be asked, 130 interrupted, 143 ended by
SIGTERM. Without a command it prints the help and ends with 2.
"""

from __future__ import annotations

import gc
import inspect
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

import api
from api.core.context import Caller, as_caller
from api.errors import ConfigurationError, ListenpostError, UsageError, extras_named
from api.interfaces.cli import (
    analyze_commands,
    archive_commands,
    correction_commands,
    evaluation_commands,
    feed_commands,
    import_command,
    key_commands,
    langfuse_commands,
    replay_command,
    report_commands,
    server_commands,
    stats_command,
    watch_commands,
)
from api.interfaces.cli.output import INTERRUPTED, LOADING, finish, prepare, run_to_end, tell
from api.sources import SOURCE_LIST

if TYPE_CHECKING:
    from api.interfaces.shared.requests import RequestBody

# Fields that are written without a dash where they are required.
_ARGUMENTS = ("query", "products", "address")
# The word for None, of options that choose among words.
_NONE_WORDS = {"only": "everything"}


class LazyCommand(TyperCommand):
    """A command whose options are made when it runs or is explained."""

    function: Callable[..., Any]
    without: Collection[str]

    @cached_property
    def made(self) -> Any:
        """The command with all of its options."""
        app = typer.Typer(add_completion=False)
        app.command()(with_options(self.function, self.without))
        return typer.main.get_command(app)

    @property
    def params(self) -> list[Any]:
        """The options of the command, made when they are first needed."""
        options: list[Any] = self.made.params
        return options

    @params.setter
    def params(self, none: object) -> None:
        """Ignore the assigned list: Typer sets the parameters of the stand-in function."""

    def invoke(self, ctx: Any) -> Any:
        """Call the function with what was written."""
        return self.made.invoke(ctx)


def with_options(function: Callable[..., Any], without: Collection[str]) -> Callable[..., None]:
    """The function with one parameter for each option, as Typer reads it; it exits with its result."""
    from pydantic import BaseModel

    from api.interfaces.shared import listing_requests, requests, watch_requests

    models = {
        name: model
        for module in (requests, listing_requests, watch_requests)
        for name, model in vars(module).items()
        if isinstance(model, type) and issubclass(model, BaseModel)
    }
    hints = get_type_hints(function, localns=models, include_extras=True)
    parameters = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(function).parameters.items()
    ]
    model: type[RequestBody] | None = None
    if parameters and parameters[0].name == "request":
        model = hints["request"]
        options = [*request_options(model, without)]
        required = [each for each in parameters[1:] if each.default is inspect.Parameter.empty]
        parameters = [*required, *options, *(p for p in parameters[1:] if p not in required)]

    def call(**values: Any) -> None:
        arguments = []
        if model is not None:
            given = {option.name: values.pop(option.name) for option in options}
            arguments = [request_of(model, given)]
        result = function(*arguments, **values)
        code = run_to_end(result) if inspect.iscoroutine(result) else result
        raise typer.Exit(code or 0)

    call.__doc__ = function.__doc__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


@dataclass(frozen=True, slots=True)
class _Option:
    """How the command line offers a field of a request."""

    field: str
    spelling: str
    kind: Any
    """Type of its value, of each where several may be given."""
    is_list: bool
    sets: str
    """Value that the flag sets."""
    help: str
    """Help of a flag in place of the field's description, which describes both values; empty: the description."""
    unsets: Any
    """Value that the negated flag sets."""
    bounds: Mapping[str, int]
    can_be_removed: bool
    """Whether an option of a patch can be set to nothing, which its own spelling cannot express."""

    @property
    def negative(self) -> str:
        """The option that removes what this one sets."""
        return self.spelling.replace("--", "--no-")


def _option_of(model: type[RequestBody], name: str, hint: Any) -> _Option:
    from api.interfaces.shared.requests import CliOption
    from api.interfaces.shared.watch_requests import WatchPatch, WatchRequest

    kinds, extras = _taken_apart(hint)
    written = next((part for part in reversed(extras) if isinstance(part, CliOption)), None)
    spelling = written.spelling if written else f"--{name.replace('_', '-')}"
    constraints = [part for extra in extras for part in getattr(extra, "metadata", ())]
    bounds = {key: getattr(c, key) for c in constraints for key in ("ge", "le") if hasattr(c, key)}
    kind, is_list = kinds[0], get_origin(kinds[0]) in {list, tuple}
    sets, unsets = written.value if written else "", None
    if sets:
        unsets = next(value for value in get_args(kind) if value != sets)
        kind = bool
    if model is WatchPatch and kind is bool:
        spelling = f"{spelling}/{spelling.replace('--', '--no-')}"
    removable = False
    if model is WatchPatch and name in WatchRequest.model_fields and name not in _NONE_WORDS:
        removable = is_list or WatchRequest.model_fields[name].default is None
    kind = str if is_list else kind
    words = written.help if written else ""
    return _Option(name, spelling, kind, is_list, sets, words, unsets, bounds, removable)


def request_options(model: type[RequestBody], without: Collection[str]) -> Iterator[inspect.Parameter]:
    """One parameter for each field; for a patch also one that removes the option's value."""
    for name, hint in get_type_hints(model, include_extras=True).items():
        if name in without or name not in model.model_fields:
            continue
        field, option = model.model_fields[name], _option_of(model, name, hint)
        info: dict[str, Any] = {"help": option.help or field.description}
        if option.kind is int:
            info |= {"min": option.bounds.get("ge"), "max": option.bounds.get("le")}
        kind: Any = list[str] if option.is_list else option.kind
        if name in _NONE_WORDS:
            kind = Literal[*get_args(kind), _NONE_WORDS[name]]
        default: Any = inspect.Parameter.empty
        if not field.is_required():
            # of text and lists that are left out the model knows the default
            default = field.default if kind is bool else field.default or None
            if option.sets:
                default = None if field.default is None else False
            kind = kind | None if default is None else kind
        if field.is_required() and name in _ARGUMENTS:
            yield _keyword(name, Annotated[kind, typer.Argument(**info)], default)
        else:
            if option.is_list:
                info["help"] = f"{(field.description or '').rstrip('.')}; repeatable."
            yield _keyword(name, Annotated[kind, typer.Option(option.spelling, **info)], default)
        if option.can_be_removed:
            removing = typer.Option(option.negative, help=f"Remove what `{option.spelling}` set.")
            yield _keyword(f"no_{name}", Annotated[bool, removing], False)


def request_of(model: type[RequestBody], given: Mapping[str, Any]) -> Any:
    """The request from the options that were given; other fields stay unset.

    Raises:
        UsageError: an option is set and removed at once.
    """
    request: dict[str, Any] = {}
    for name, hint in get_type_hints(model, include_extras=True).items():
        if name not in given:
            continue
        value, option = given[name], _option_of(model, name, hint)
        if given.get(f"no_{name}"):
            if value is not None:
                raise UsageError(f"use one of `{option.spelling}` and `{option.negative}`")
            request[name] = () if option.is_list else None
        elif option.sets:
            if value is not None and (value or model.model_fields[name].default is None):
                request[name] = option.sets if value else option.unsets
        elif value is not None:
            request[name] = tuple(value) if option.is_list else value
            if value == _NONE_WORDS.get(name):
                request[name] = None
    return model.model_construct(set(request), **request)


def _taken_apart(hint: Any) -> tuple[list[Any], list[Any]]:
    """The types of a hint without `Annotated` and None, and what annotates them, outermost last."""
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        kinds, inside = _taken_apart(inner)
        return kinds, [*inside, *extras]
    if get_origin(hint) in {Union, UnionType}:
        parts = [_taken_apart(part) for part in get_args(hint)]
        return [k for kinds, _ in parts for k in kinds], [e for _, extras in parts for e in extras]
    return ([] if hint is NoneType else [hint]), []


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


# Columns of this terminal, and those that help in boxes takes; below them it is plain text, since
# boxes with three columns cut the names of options where there is no room for them.
_COLUMNS, _BOXES = max(shutil.get_terminal_size().columns, 40), 70
app = typer.Typer(
    name="listenpost",
    help=f"What people really say about a product on {SOURCE_LIST}.",
    no_args_is_help=True,
    rich_markup_mode="rich" if _COLUMNS >= _BOXES else None,
    context_settings={"terminal_width": _COLUMNS} if _COLUMNS < _BOXES else {},
    pretty_exceptions_enable=False,
    add_completion=False,
)


def add_group(name: str, help_text: str, **how: Any) -> typer.Typer:
    """A command that has commands of its own."""
    group = typer.Typer(help=help_text, **how)
    app.add_typer(group, name=name)
    return group


def add_command(
    group: typer.Typer, function: Callable[..., Any], name: str = "", without: Collection[str] = ()
) -> None:
    """Register a function as a command under its own name; its options leave out the fields in `without`."""
    attributes = {"function": staticmethod(function), "without": without}
    lazy = type("Command", (LazyCommand,), attributes)

    def stand_in() -> None:
        raise AssertionError("a lazy command calls its own function")

    name = name or function.__name__.replace("_", "-")
    group.command(name, cls=lazy, help=inspect.getdoc(function))(stand_in)


add_command(app, analyze_commands.analyze, without=("items",))
add_command(app, analyze_commands.compare)
add_command(app, analyze_commands.fetch)
add_command(app, analyze_commands.filter_items, "filter", without=("items",))
add_command(app, analyze_commands.chat, without=("message", "items"))
add_command(app, replay_command.replay)
add_command(app, archive_commands.search)
add_command(app, stats_command.stats)
add_command(app, report_commands.feedback, without=("rating",))
add_command(app, correction_commands.correct)
add_command(app, correction_commands.review)
add_command(app, correction_commands.corrections)
add_command(app, server_commands.serve)
add_command(app, server_commands.work)
add_command(app, server_commands.listen)
add_command(app, server_commands.mcp)
add_command(app, server_commands.doctor)
add_command(app, server_commands.sandbox)
add_command(app, evaluation_commands.evaluate, "eval")

_bench = add_group("bench", "The public benchmark for relevance gates; see docs/bench.md.", no_args_is_help=True)
add_command(_bench, evaluation_commands.fetch)
add_command(_bench, evaluation_commands.items)
add_command(_bench, evaluation_commands.run)
add_command(_bench, evaluation_commands.show)

_keys = add_group("keys", "API keys of the HTTP API.", no_args_is_help=True)
add_command(_keys, key_commands.add_key, "add")
add_command(_keys, key_commands.list_keys, "list")
add_command(_keys, key_commands.revoke_key, "revoke")

_reports = add_group("reports", "Stored analyses; without a command: list them.")
add_command(_reports, report_commands.list_reports, "list")
add_command(_reports, report_commands.show_report, "show")
add_command(_reports, report_commands.export_report, "export")
add_command(_reports, report_commands.open_report, "open")
add_command(_reports, report_commands.delete_report, "delete")

_feeds = add_group(
    "feeds", "Feeds that questions read: RSS, Atom, JSON Feed; see docs/sources/feeds.md.", no_args_is_help=True
)
add_command(_feeds, feed_commands.follow, "add")
add_command(_feeds, feed_commands.list_feeds, "list")
add_command(_feeds, feed_commands.remove)

_watches = add_group(
    "watch",
    "Ask a question on a schedule, and be notified of what is new; see docs/watches.md.",
    no_args_is_help=True,
)
add_command(_watches, watch_commands.add)
add_command(_watches, watch_commands.list_watches, "list")
add_command(_watches, watch_commands.show)
add_command(_watches, watch_commands.history)
add_command(_watches, watch_commands.run_watches, "run")
add_command(_watches, watch_commands.change, without=("paused",))
add_command(_watches, watch_commands.pause)
add_command(_watches, watch_commands.resume)
add_command(_watches, watch_commands.remove)
add_command(_watches, watch_commands.notify_test)
add_command(_watches, watch_commands.notify_again)
add_command(_watches, watch_commands.feed)

_imports = add_group(
    "import",
    "Bring a dump, an export or a table into the archive: `listenpost import FILE`, `-` for "
    "stdin. See `listenpost import FILE --help`, and docs/archive.md.",
    cls=import_command.FileOrCommand,
    no_args_is_help=True,
    subcommand_metavar="FILE | COMMAND",
)
add_command(_imports, import_command.import_file, import_command.FILE)
add_command(_imports, import_command.list_imports, "list")
add_command(_imports, import_command.show)
add_command(_imports, import_command.remove)
add_command(_imports, import_command.forget)

_archive = add_group(
    "archive",
    "Vectors by a server for the search of what is stored; see docs/archive.md.",
    no_args_is_help=True,
)
add_command(_archive, archive_commands.embed)

_langfuse = add_group(
    "langfuse",
    "Dashboards, score configs, prompts and datasets in Langfuse; see docs/langfuse.md.",
    no_args_is_help=True,
)
add_command(_langfuse, langfuse_commands.apply)
add_command(_langfuse, langfuse_commands.remove)
add_command(_langfuse, langfuse_commands.open_dashboards, "open")


@_reports.callback(invoke_without_command=True)
def reports(context: typer.Context) -> None:
    """Stored analyses; without a command: list them."""
    if context.invoked_subcommand is None:
        raise typer.Exit(run_to_end(report_commands.list_reports()))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"listenpost {api.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", help="Print the version and exit.",
            callback=_print_version, is_eager=True,
        ),
    ] = False,
) -> None:  # fmt: skip
    """Options before a command."""


# Commands that ask once and end, and the new objects after which Python looks for garbage: in them, and in others.
_QUESTIONS, _OBJECTS_OF_QUESTION, _OBJECTS = (["analyze"], ["compare"], ["fetch"], ["replay"]), 1_000_000, 20_000
# Commands that print by themselves what they begin with, or read what somebody types.
_NO_SIGN = ("chat", "eval", "bench", "filter", "mcp", "sandbox", "import")


def run(words: Sequence[str] | None = None) -> NoReturn:
    """The console script: every expected failure is one line on stderr and an exit code.

    `words` stand in for the command line's own, where the process does more than this command.
    """
    if words is None:
        # Python looks for garbage after every 700 new objects, in vain: nearly all that a command makes stays. Of a
        # question that takes 0.6 s
        gc.set_threshold(_OBJECTS_OF_QUESTION if sys.argv[1:2] in _QUESTIONS else _OBJECTS)
    prepare()
    if (
        words is None
        and sys.argv[1:]
        and sys.argv[1] not in _NO_SIGN
        and sys.argv[1].isalpha()
        and "--help" not in sys.argv
    ):
        LOADING.show()
    code = 0
    try:
        with extras_named(), as_caller(Caller("cli")):
            app(words)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0
    except ListenpostError as error:
        from api.core.text import clean, one_line

        kind = "configuration" if isinstance(error, ConfigurationError) else "error"
        tell(f"listenpost: {kind}: {one_line(clean(str(error)))}")
        code = 2
    except KeyboardInterrupt:
        code = INTERRUPTED
    finish()
    if words is None:
        gc.freeze()  # else Python takes apart what the system takes back anyway, 0.9 s after a question
    raise SystemExit(code)
