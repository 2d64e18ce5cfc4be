"""The author's own words: no quoted word counts, and none of their own is lost."""

from __future__ import annotations

from time import process_time

import pytest

from api.core.own_words import own_words

Q, OWN = "The battery is terrible", "Not in my experience"
QUOTED = {
    "reddit": [
        f"> {Q}\n\n{OWN}", f">{Q}\n\n{OWN}", f"> {Q}\n{OWN}", f">> {Q}\n> He is right\n\n{OWN}",
        f"&gt; {Q}\n\n{OWN}", f"&gt;{Q}\n\n{OWN}", f"&gt;&gt; {Q}\n\n{OWN}", f"{OWN}\n\n> {Q}",
        f"   > {Q}\n\n{OWN}", f"{OWN}\n\n    log: {Q}\n    end", f"{OWN}\n\n```\n{Q}\n```", f"{OWN}\n~~~\n{Q}\n~~~",
        f"{OWN}\n\n( ) {Q}\n( ) The app is slow", f"{OWN}\n\n[View Poll](https://www.reddit.com/poll/x)\n- {Q}\n- No",
        f"[{Q}](https://news.example/a)\n\n{OWN}", f"{OWN}\n\n^(I am a bot. {Q})", f"{OWN}\n\nI am a bot. {Q}",
        f"{OWN}\n\n![{Q}](https://i.example/a.png)", f"| > {Q}\n\n{OWN}", f"{OWN}\n\nsubmitted by /u/x {Q}",
    ],
    "mail": [
        f"{OWN}\n\nOn Mon, 3 Feb 2025 at 10:00, Ann wrote:\n> {Q}", f"On 3 May 2025, Ann wrote:\n> {Q}\n\n{OWN}",
        f"{OWN}\n\nOn Mon, 3 Feb 2025 at 10:00, Ann Other <ann@example.org>\nwrote:\n> {Q}",
        f"{OWN}\n\nOn Mon, 3 Feb 2025, Ann wrote:\n{Q}", f"{OWN}\n\nAm 3. Mai 2025 um 10:00 schrieb Ann:\n{Q}",
        f"Am 3.5.2025 schrieb Ann Other:\n> {Q}\n\n{OWN}", f"{OWN}\n\nLe 3 mai 2025, Ann a écrit :\n> {Q}",
        f"{OWN}\n\nEl 3 may 2025, Ann escribió:\n> {Q}", f"{OWN}\n\nEm 3 de maio de 2025, Ann escreveu:\n> {Q}",
        f"{OWN}\n\nIl giorno 3 maggio 2025 Ann ha scritto:\n> {Q}", f"{OWN}\n\nOp 3 mei 2025 schreef Ann:\n> {Q}",
        f"{OWN}\n\n-----Original Message-----\nFrom: Ann\n{Q}", f"{OWN}\n\n-----Ursprüngliche Nachricht-----\n{Q}",
        f"{OWN}\n\n2025年5月3日 Ann写道：\n> {Q}", f"{OWN}\n\n-- \nAnn\n{Q}", f"{OWN}\n--\n{Q}",
        f"{OWN}\n\nSent from my phone where {Q}", f"{OWN}\n\nGesendet von meinem Gerät {Q}",
        f"{OWN}\n\nEnvoyé de mon téléphone {Q}", f"{OWN}\n\nEnviado desde mi teléfono {Q}",
    ],
    "forums": [
        f'[quote="ann, post:3, topic:9"]\n{Q}\n[/quote]\n\n{OWN}', f"[quote=ann]{Q}[/quote]\n{OWN}",
        f"[QUOTE]{Q}[/QUOTE] {OWN}", f"[quote][quote]{Q}[/quote]So it is.[/quote]{OWN}", f"[code]{Q}[/code]\n{OWN}",
        f"ann said: ↑\n{Q}\nClick to expand...\n{OWN}", f"Ann Other said:\n{Q}\nIt is.\nClick to expand...\n\n{OWN}",
        f"Zitat von Ann:\n> {Q}\n\n{OWN}", f"Quote from: Ann on 3 May\n> {Q}\n\n{OWN}",
        f"Originally posted by Ann:\n> {Q}\n\n{OWN}", f"<blockquote>{Q}</blockquote>{OWN}",
        f'<blockquote class="x"><p>{Q}</p></blockquote>\n{OWN}',
        f"<blockquote>a<blockquote>{Q}</blockquote>b</blockquote>{OWN}",
        f"&lt;blockquote&gt;{Q}&lt;/blockquote&gt;{OWN}",
        f"{OWN}\n<blockquote>{Q}", f"<BLOCKQUOTE>{Q}</BLOCKQUOTE>\n\n{OWN}",
        f'<aside class="onebox">{Q}</aside>{OWN}', f"<pre>{Q}</pre>{OWN}", f"{OWN}\nPoll: Which?\n1. {Q}\n2. None",
        f"{OWN}\n- {Q} 41 votes\n- None 3 votes",
    ],
    "github, lemmy, streams": [
        f"<details><summary>Logs</summary>\n\n{Q}\n\n</details>\n\n{OWN}", f"<details>\n{Q}\n</details>{OWN}",
        f"{OWN}\n<details open>{Q}", f"{OWN}\n\n```text\n{Q}", f"{OWN}\n\n````\n```\n{Q}\n```\n````",
        f"> **ann** commented\n> {Q}\n\n{OWN}", f"> - {Q}\n> - more\n\n{OWN}", f"{OWN}\n\n\tpanic: {Q}",
        f"{Q} | The Verge\nhttps://theverge.example/a\n\n{OWN}", f"https://a.example/b\n{Q} - Example News\n\n{OWN}",
        f"{Q} – Example News\nhttps://a.example/b\n{OWN}", f"RT @ann: {Q}\n{OWN}", f"QT @ann {Q}\n{OWN}",
        f"::: spoiler {Q}\n{OWN}\n:::", f"[![{Q}](https://i.example/a.png)\n{OWN}", f"＞ {Q}\n{OWN}",
        f"○ {Q}\n○ None\n\n{OWN}", f"☐ {Q}\n\n{OWN}", f"{Q} 61 %\nNone 39 %\n\n{OWN}", f"» {Q}\n{OWN}",
    ],
}  # fmt: skip
CASES = [(place, text) for place, texts in QUOTED.items() for text in texts]


def test_there_are_eighty() -> None:
    """Twenty of each kind of place."""
    assert [len(texts) for texts in QUOTED.values()] == [20] * 4


@pytest.mark.parametrize(("place", "text"), CASES)
def test_no_quoted_word_counts(place: str, text: str) -> None:
    """And the author's own stay as they stand."""
    own = own_words(text)

    assert "battery" not in own, (place, own)
    assert OWN in own, (place, own)


@pytest.mark.parametrize(
    "text",
    [
        "The battery lasts.\nThe app is slow.", ">50 hours of battery", ">:( it broke", "It is > than mine, -> buy",
        "- light\n- cheap", "1. It is light\n2. It is cheap", "On Monday I wrote about it: it is good",
        "Battery: 8 h\nApp: slow", "I said: buy it", "Pros | Cons", "It is 50 % better.", "Poll or not, I like it",
        "Look at [this review](https://a.example/b), it is right", "It dies -- always -- at noon",
        "Use `sync` for it", "Sent it back from my office.", "It works - mostly", "5 < 6 and 7 > 6",
    ],
)  # fmt: skip
def test_own_words_stay_as_they_are(text: str) -> None:
    """What only looks like a quotation is none."""
    assert own_words(text) == text


@pytest.mark.parametrize(
    "text", [">!It dies!<", "||It dies||", "<spoiler>It dies</spoiler>", "[spoiler]It dies[/spoiler]"]
)
def test_what_a_spoiler_hides_is_the_authors(text: str) -> None:
    """Its marks are nobody's words."""
    assert own_words(f"So: {text}\nYes").split("\n") == ["So: ", "It dies", "", "Yes"]


@pytest.mark.parametrize(
    "part",
    [
        "> a\n",
        "On 3 May, Ann wrote:\n> a\n",
        "--\n",
        "[quote]",
        "<details>",
        "```\n",
        "ann said:\n",
        "    a\n\n",
        "a\n" * 3,
    ],
)
def test_it_takes_linear_time(part: str) -> None:
    """However often a form comes."""
    text = part * (400_000 // len(part))
    begun = process_time()
    own_words(text)

    assert process_time() - begun < 8  # under 1 s on an idle core
