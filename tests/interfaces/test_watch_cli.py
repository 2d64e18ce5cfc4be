"""`listenpost watch`: over the sandbox, as a person uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.interfaces.command import Here
from tests.loopback import Loopback, Reply
from tests.notifications.mail_server import MailServer

ADD = ("watch", "add", "Oura", "--depth", "quick", "--source", "hackernews", "--sandbox")


def test_watch_runs_twice_and_tells_once(here: Here, tmp_path: Path) -> None:
    """The first run is the baseline; the second finds nothing new, and nobody hears of it."""
    file = tmp_path / "heard.jsonl"
    added = here(*ADD, "--every", "mon 08:00", "--tz", "Europe/Berlin", "--notify", f"file:{file}",
                 "--tell-first")  # fmt: skip
    first = here("watch", "run", "--due")
    second = here("watch", "run", "Oura")
    nothing = here("watch", "run", "--due")

    assert (added.code, first.code, second.code, nothing.code) == (0, 0, 0, 0), first.err
    assert re.fullmatch(r"\w{32}\n", added.out)
    assert "watching “Oura”, mon 08:00 (Europe/Berlin); the first run is due now:" in added.err
    assert "signed" not in added.err
    assert re.match(r"Oura \(made-up sample data\): the first run found \d+ posts? written since ", first.out)
    assert "http" not in first.out
    assert f"file:{file}: delivered" in first.err
    assert re.fullmatch(
        r"Oura \(made-up sample data\): no new posts since \S+ \S+\n",
        second.out,
    )
    assert (nothing.out, nothing.err) == ("", "nothing is due\n")
    (line,) = file.read_text().splitlines()
    assert json.loads(line)["run"]["state"] == "baseline"


def test_a_receiver_has_a_rule_and_a_digest(here: Here, tmp_path: Path) -> None:
    """`show` says what is held back and why; what waited for a digest that is taken away is sent."""
    file, other = tmp_path / "heard.jsonl", tmp_path / "odd.jsonl"
    here(*ADD, "--tell-first", "--notify", f"file:{file} digest mon 08:00", "--notify", f"file:{other} only unusual")
    ran = here("watch", "run", "--due")
    shown = here("watch", "show", "Oura")
    held = here("watch", "show", "Oura", "--format", "json").json["held_back"]
    again = here("watch", "notify-again", "Oura")
    written = file.exists() or other.exists()
    here("watch", "change", "Oura", "--notify", f"file:{file}")
    sent = here("watch", "run", "--due")
    wrong = here("watch", "change", "Oura", "--notify", "mailto:ann@example.org weekly")

    assert f"file:{file}: held back: waits for the digest of mon 08:00" in ran.err
    assert f"receivers: file:{file} digest mon 08:00, file:{other} only unusual\n" in shown.out
    assert f"held back: 1 run from file:{other}: nothing unusual in it (the last " in shown.out
    assert [(each["held"], each["runs"]) for each in held] == [("digest", 1), ("rule", 1)]
    assert (again.err, written) == ("every receiver was notified; nothing is sent\n", False)
    assert sent.err == "the digest of “Oura” was sent\n"
    assert json.loads(file.read_text())["type"] == "watch.digest"
    assert not other.exists()
    assert "“weekly” is no rule of a receiver; write `only complaints`" in wrong.err


def test_a_watch_has_notes_of_days(here: Here) -> None:
    """Named anew by a change, and taken away."""
    here(*ADD, "--note", "2026-11-20 Version 2.1", "--note", "2026-11-02 Sale")
    added = here("watch", "show", "Oura", "--format", "json").json["notes"]
    text = here("watch", "show", "Oura").out
    wrong = here("watch", "change", "Oura", "--note", "yesterday Sale")
    here("watch", "change", "Oura", "--no-note")
    assert added == ["2026-11-20 Version 2.1", "2026-11-02 Sale"]
    assert "notes: 2026-11-02 Sale; 2026-11-20 Version 2.1\n" in text
    assert "“yesterday Sale” is no note of a day; write one such as `2026-11-20 Version 2.1`" in wrong.err
    assert here("watch", "show", "Oura", "--format", "json").json["notes"] == []


def test_an_everyday_name_says_which_meaning_is_watched(here: Here) -> None:
    """All of them, until it is described; a name that means one thing says nothing."""
    plain = here("watch", "add", "Arc", "--sandbox")
    described = here("watch", "add", "Arc", "--name", "browser", "--about", "a web browser", "--sandbox")

    assert "“Arc” is also an everyday word, and all its meanings are watched; to choose one, set `--about`" in plain.err
    assert "everyday" not in described.err
    assert "everyday" not in here(*ADD).err


def test_runs_are_kept_with_their_reports(here: Here) -> None:
    """`history` has a line for each, `reports show` the report behind it."""
    here(*ADD)
    assert here("watch", "history", "Oura").err.startswith("it has not run yet: `listenpost watch")
    ran = here("watch", "run", "Oura", "--format", "json").json
    lines = here("watch", "history", "Oura").out.splitlines()
    listed = json.loads(here("watch", "history", "Oura", "--format", "json").out)

    assert len(lines) == 1
    assert lines[0].endswith(f"report {ran['report_id'][:8]}")
    assert listed == [ran]
    assert here("reports", "show", ran["report_id"][:8]).code == 0


def test_history_over_time(here: Here) -> None:
    """A row for the week of its only run; as JSON what `/trend` answers."""
    here(*ADD)
    assert here("watch", "history", "Oura", "--plot").err.startswith("it has not run yet")
    ran = here("watch", "run", "Oura", "--format", "json").json
    plotted = here("watch", "history", "Oura", "--plot")
    trend = here("watch", "history", "Oura", "--plot", "--weeks", "2", "--format", "json").json
    (line,) = trend["lines"]
    posts = ran["counts"]["sources"]["hackernews"]["posts"]

    assert plotted.out.startswith("Oura (made-up sample data): 1 week by the clock of UTC\n")
    assert re.search(rf"^{line['weeks'][0]['week']}  [█·]+ +{posts}$", plotted.out, re.M)
    assert line["weeks"][0]["sources"]["hackernews"]["posts"] == posts


def test_what_a_watch_excludes_can_be_added_and_removed(here: Here) -> None:
    """`--not` is repeatable and names all; `--no-not` removes them."""
    added = here(*ADD, "--not", "the ouroboros", "--not", "a river")

    def excluded() -> list[str]:
        shown: list[str] = here("watch", "show", "Oura", "--format", "json").json["not_about"]
        return shown

    assert added.code == 0
    assert "asks: Oura - not the ouroboros; not a river" in here("watch", "show", "Oura").out
    assert excluded() == ["the ouroboros", "a river"]
    assert here("watch", "change", "Oura", "--not", "a river").code == 0
    assert excluded() == ["a river"]
    assert here("watch", "change", "Oura", "--not", "a lake", "--no-not").code == 2
    assert here("watch", "change", "Oura", "--no-not").code == 0
    assert excluded() == []


def test_words_authors_and_sites_are_left_out_of_a_watch(here: Here) -> None:
    """Each option is repeatable, is shown, and has one that removes it."""
    assert here(*ADD, "--exclude", "giveaway", "--exclude-author", "u/ada", "--exclude-site", "r/deals").code == 0
    assert "asks: Oura - left out: giveaway, u/ada, r/deals" in here("watch", "show", "Oura").out
    assert here("watch", "change", "Oura", "--no-exclude", "--no-exclude-author", "--no-exclude-site").code == 0
    assert "left out" not in here("watch", "show", "Oura").out
    refused = here("watch", "change", "Oura", "--exclude", " ")
    assert (refused.code, "names nothing" in refused.err) == (2, True)


def test_a_watch_can_count_mentions_and_stop_to(here: Here) -> None:
    """A flag of `add`, and two of `change`; another change leaves it as it is."""
    here(*ADD, "--mentions")

    def aim() -> str:
        shown: str = here("watch", "show", "Oura", "--format", "json").json["aim"]
        return shown

    assert aim() == "mention"
    here("watch", "change", "Oura", "--no-mentions")
    assert aim() == "about"
    here("watch", "change", "Oura", "--mentions")
    here("watch", "change", "Oura", "--depth", "deep")
    assert aim() == "mention"


def test_watch_is_listed_shown_paused_changed_and_removed(here: Here) -> None:
    """By its name, its id, or the beginning of that; no secret is shown again."""
    assert here("watch", "list").err.startswith("nothing is watched")
    added = here(*ADD, "--notify", "https://hooks.example/T/hidden", "--about", "a ring")
    mark, secret = added.out[:8], re.search(r"whsec_\S+(?=`)", added.err)
    assert secret is not None
    assert here("watch", "pause", mark).err == "“Oura” is paused\n"
    assert here("watch", "list").out.split() == [mark, "paused", "mon", "08:00", "Oura"]
    assert here("watch", "run", "--due").err == "nothing is due\n"
    assert re.search("“Oura” goes on; due ....-..-.. 08:00 UTC", here("watch", "resume", mark).err)
    changed = here("watch", "change", "Oura", "--about", "a ring that measures", "--every",
                   "daily 7:30", "--source", "lemmy", "--source", "github")  # fmt: skip
    assert re.search("“Oura” is changed; due ....-..-.. 07:30 UTC", changed.err)

    renamed = here("watch", "change", "Oura", "--name", "Ring", "--depth", "deep", "--only",
                "complaints", "--notify", "file:heard")  # fmt: skip
    silent = here("watch", "show", "Ring").out
    signed = here("watch", "change", "Ring", "--name", "Oura", "--depth", "quick", "--only",
                  "everything", "--notify", "https://hooks.example/T/hidden")  # fmt: skip
    shown = here("watch", "show", "Oura")
    as_json = here("watch", "show", "Oura", "--format", "json")
    (listed,) = json.loads(here("watch", "list", "--format", "json").out)
    assert "asks: Oura - a ring that measures" in shown.out
    assert "of: lemmy, github; depth quick; sample data" in shown.out
    assert "receivers: webhook:hooks.example\n" in shown.out
    assert "depth deep" in silent
    assert f"receivers: file:{Path('heard').absolute()}; only complaints" in silent
    assert secret[0] not in changed.err + renamed.err
    assert secret[0] in signed.err
    assert as_json.json == {**listed, "last_run": None, "undelivered": [], "held_back": []}
    for ended in (shown, as_json):
        assert "hidden" not in ended.out
        assert secret[0] not in ended.out
    here("watch", "change", "Oura", "--as-it-happens")
    assert here("watch", "list").out.endswith("Oura  (posts of streams as it happens)\n")
    assert here("watch", "remove", "Oura").code == 0
    assert here("watch", "list").out == ""


def test_every_option_can_be_set_and_taken_away(here: Here) -> None:
    """
    A flag with `no` empties what its option set; both at once are refused.
    """
    here(*ADD, "--notify", "file:heard", "--limit", "7")
    here("watch", "change", "Oura", "--limit", "9", "--tell-first", "--only", "complaints")
    changed = here("watch", "show", "Oura", "--format", "json").json
    here("watch", "change", "Oura", "--no-source", "--no-notify", "--no-limit", "--no-tell-first",
         "--only", "everything")  # fmt: skip
    emptied = here("watch", "show", "Oura", "--format", "json").json
    both = here("watch", "change", "Oura", "--source", "reddit", "--no-source")

    options = ("limit", "tell_first", "only", "sources")
    assert [changed[name] for name in options] == [9, True, "complaints", ["hackernews"]]
    assert [emptied[name] for name in options] == [None, False, None, []]
    assert (len(changed["notify"]), emptied["notify"]) == (1, [])
    assert (both.code, "use one of `--source` and `--no-source`" in both.err) == (2, True)


def test_trial_message_says_what_arrived(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each kind; and `show` lists what a run could not deliver."""
    with Loopback(lambda asked: Reply(404)) as server, MailServer() as mail:
        here(*ADD, "--notify", f"slack:{server.url}/x", "--notify", "file:heard", "--notify",
             "mailto:ann@example.org", "--tell-first")  # fmt: skip
        refused = here("watch", "notify-test", "Oura")
        with monkeypatch.context() as allowing:
            allowing.setenv("LISTENPOST_NOTIFY_PRIVATE", "true")
            for name, value in mailing(mail).items():
                allowing.setenv(name, value)
            allowed = here("watch", "notify-test", "Oura")
    here("watch", "run", "Oura")
    shown = here("watch", "show", "Oura")

    assert (refused.code, allowed.code) == (4, 4)
    assert "slack:127.0.0.1: did not arrive: its address is within this network" in refused.out
    assert "mail:ann@example.org: did not arrive: no e-mail is sent; set `LISTENPO" in refused.out
    assert "slack:127.0.0.1: did not arrive: it answered 404" in allowed.out
    assert f"file:{Path('heard').absolute()}: arrived" in allowed.out
    assert "mail:ann@example.org: arrived" in allowed.out
    assert len(mail.mails) == 1
    assert re.search(r"^undelivered: \S+ \S+, run \w{8}, to slack:127.0.0.1: its address", shown.out, re.M)


def mailing(server: MailServer) -> dict[str, str]:
    """The settings by which a server on this machine sends mail."""
    settings = {
        "HOST": "127.0.0.1",
        "PORT": f"{server.port}",
        "TLS": "none",
        "FROM": "lp@a.example",
    }
    return {f"LISTENPOST_SMTP_{name}": value for name, value in settings.items()}


def test_what_did_not_arrive_is_sent_again(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, or one run, until everybody was told."""
    here(*ADD, "--notify", "mailto:ann@example.org", "--tell-first")
    assert here("watch", "notify-again", "Oura").err == "every receiver was notified; nothing is sent\n"
    run = here("watch", "run", "Oura", "--format", "json").json
    refused = here("watch", "notify-again", "Oura")
    (missed,) = here("watch", "show", "Oura", "--format", "json").json["undelivered"]
    unknown = here("watch", "notify-again", "Oura", "none")
    with MailServer() as mail:
        for name, value in mailing(mail).items():
            monkeypatch.setenv(name, value)
        taken = here("watch", "notify-again", "Oura", run["id"][:8])
        idle = here("watch", "notify-again", "Oura")

    assert (refused.code, unknown.code, taken.code, idle.code) == (4, 2, 0, 0)
    assert "mail:ann@example.org: did not arrive: no e-mail is sent" in refused.out
    assert (missed["run_id"], missed["failure"], missed["tries"]) == (
        run["id"],
        "not_configured",
        2,
    )
    assert "mail:ann@example.org: arrived" in taken.out
    assert idle.err == "every receiver was notified; nothing is sent\n"
    assert [mail["Message-ID"] for mail in mail.mails] == [f"<{run['id']}@a.example>"]
    assert here("watch", "show", "Oura", "--format", "json").json["undelivered"] == []


def test_feed_is_given_renewed_and_closed(here: Here) -> None:
    """Its address is shown once; `show` says that there is one."""
    here(*ADD)
    given = here("watch", "feed", "Oura")
    again = here("watch", "feed", "Oura")
    renewed = here("watch", "feed", "Oura", "--renew")
    shown = here("watch", "show", "Oura")
    closed = here("watch", "feed", "Oura", "--close")
    both = here("watch", "feed", "Oura", "--close", "--renew")

    assert [ended.code for ended in (given, again, renewed, closed, both)] == [0, 2, 0, 0, 2]
    for ended in (given, renewed):
        assert re.fullmatch(r"/v1/feeds/\w{32}\?token=[\w-]{43}\n", ended.out)
        assert "it is not shown again" in ended.err
    assert given.out != renewed.out
    assert "`--renew` makes another" in again.err
    assert "receivers: nobody; a feed" in shown.out
    assert renewed.out.partition("token=")[2].strip() not in shown.out
    assert closed.err == "“Oura” has no feed\n"
    assert "receivers: nobody\n" in here("watch", "show", "Oura").out


def test_run_that_hears_nothing_ends_with_4(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says why."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    here("watch", "add", "Oura", "--depth", "quick", "--source", "youtube")
    ended = here("watch", "run", "--due")
    assert ended.code == 4
    assert ended.out.startswith("Oura: no source answered: ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "hello"), "Hello!"),
        (("add", "Oura", "--every", "never"), "“never” is no schedule; write `mon 08:00`"),
        (("add", "Oura", "--tz", "Mars"), "there is no time zone “Mars”"),
        (("add", "Oura", "--source", "myspace"), "there is no source `myspace`; there are"),
        (("add", "Oura", "--notify", "mailto:a"), "a notification goes to `https://...`"),
        (("run",), "name one watch, or use `--due`"),
        (("run", "Oura", "--due"), "name one watch, or use `--due`"),
        (("change", "Oura"), "say what to change"),
        (("show", "Oura"), "there is no watch “Oura”; `listenpost watch list` shows them"),
    ],
)
def test_what_is_wrong_is_named(here: Here, words: tuple[str, ...], message: str) -> None:
    """In one line."""
    ended = here("watch", *words)
    assert ended.code == 2
    assert message in ended.err


def test_watch_that_tells_nobody_has_no_trial(here: Here) -> None:
    """And of two with one name there is one."""
    here(*ADD)
    assert "notifies nobody" in here("watch", "notify-test", "Oura").err
    assert "a watch named “Oura” is there already" in here(*ADD).err
