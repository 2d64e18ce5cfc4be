"""`keys` and `reports`: what the store holds."""

from __future__ import annotations

from typing import Annotated

import typer

from api.faces.cli.choices import Format

keys = typer.Typer(help="API keys of the HTTP API.", no_args_is_help=True)
reports = typer.Typer(help="Analyses that were kept; without a command: list them.")
As = Annotated[Format, typer.Option("--format", help="How to print it.")]
Limit = Annotated[int, typer.Option(help="How many, newest first.", min=1, max=1000)]
Id = Annotated[str, typer.Argument(help="As listed.")]


@keys.command()
def add(name: Annotated[str, typer.Argument(help="Whose key it is.")]) -> None:
    """Make a key and print it, this once."""
    from api.faces.cli.storing import add_key

    raise typer.Exit(add_key(name))


@keys.command(name="list")
def list_keys(form: As = Format.text) -> None:
    """Every key with its origin, revoked ones too; never the key itself."""
    from api.faces.cli.storing import list_keys

    raise typer.Exit(list_keys(form))


@keys.command()
def revoke(key: Annotated[str, typer.Argument(help="Id or name.")]) -> None:
    """Make a key invalid for good."""
    from api.faces.cli.storing import revoke_key

    raise typer.Exit(revoke_key(key))


@reports.callback(invoke_without_command=True)
def every(context: typer.Context) -> None:
    """Analyses that were kept; without a command: list them."""
    if context.invoked_subcommand is None:
        list_reports()


@reports.command(name="list")
def list_reports(limit: Limit = 20, form: As = Format.text) -> None:
    """The newest, one a line."""
    from api.faces.cli.storing import list_reports

    raise typer.Exit(list_reports(limit, form))


@reports.command()
def show(
    report: Id,
    form: As = Format.text,
    dropped: Annotated[bool, typer.Option("--dropped", help="Also what was dropped.")] = False,
) -> None:
    """One report again, as `analyze` printed it."""
    from api.faces.cli.storing import show_report

    raise typer.Exit(show_report(report, form, dropped))


@reports.command()
def delete(report: Id) -> None:
    """One report, with every item that only it held."""
    from api.faces.cli.storing import delete_report

    raise typer.Exit(delete_report(report))
