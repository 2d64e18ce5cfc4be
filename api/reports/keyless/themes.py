"""The report without a model: what people say of a product, each claim quoted and counted by independent people.

A claim is a sentence of somebody, word for word, with how many people say alike and where. A subject of which many
speak without saying alike is shown with its people. Nothing else is claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice

import regex

from api.core.domain import Question
from api.core.text import one_line
from api.pipeline.question.product_name import question_parts, search_words
from api.reports.exhibits import Exhibit
from api.reports.keyless import claims
from api.reports.keyless.aspects import aspects, aspects_in, aspects_named
from api.reports.keyless.claims import SharedSubject, Statement
from api.reports.keyless.polarity import lean_wanted
from api.reports.keyless.product_mentions import Subject, is_excluded, is_identified
from api.reports.keyless.quotable import says_something
from api.reports.keyless.sentence_index import READ_IN_ALL, Sentence, SentenceIndex
from api.reports.keyless.sentence_topic import KIND
from api.reports.keyless.theme_finding import (
    ThemeFinding,
    ThemePassage,
    one_side,
    spread,
    title_of,
    told_once,
    unsure_side,
)
from api.reports.keyless.theme_sentences import (
    SHARED,
    VOICE,
    claim_sentence,
    in_words,
    side_sentence,
    subject_sentence,
    theme_summary,
)
from api.reports.quotes import beginning, without_stop
from api.reports.report import LONGEST_PASSAGE, FindingKind

MOST_THEMES = 15  # themes of a report at most
MANY = 5
"""People from which a subject is shown although few of them say alike."""
_MOST_SUGGESTIONS = 3
# Below so many themes, what two people say and then single voices fill up; claims on one subject at most.
_FEW_THEMES, _MOST_CLAIMS = 3, 2
# Groups of statements on a subject that are looked at, and claims on one that is asked about.
_MOST_GROUPS, _MOST_ANSWERS = 8, 5
# Findings up to which single voices answer a question about one side.
_FEW_ANSWERS = 5
# Probability that a reader finds a sentence informative from which it is shown though its subject is nobody else's.
_TELLING_ALONE = 0.3
# Sentences of which single voices are chosen at most.
_MOST_VOICES = 300
_VERSUS = regex.compile(r"\b(?:vs|versus)\b", regex.I)
VERBS = {None: "say", 1: "like", -1: "dislike"}
"""By the lean that is asked for, what people do in the headline."""
_KINDS: dict[int, FindingKind] = {1: "praise", -1: "complaint"}
_SIDES: tuple[tuple[int, FindingKind, str], ...] = ((-1, "complaint", "complain"), (1, "praise", "praise it"))
"""By lean: the kind of a finding, and what its people do."""


@dataclass(frozen=True, slots=True)
class ThemeReport:
    """What the writer without a model says."""

    topic: str
    summary: str
    findings: tuple[ThemeFinding, ...]
    suggestions: tuple[str, ...]
    spoken: tuple[tuple[str, int], ...] = ()
    """Subjects that enough people speak of, most first, with their people; none where one side is asked for."""

    @property
    def bare_summary(self) -> str:
        """The summary without numbers of people, for passages that were removed."""
        claimed = [finding for finding in self.findings if finding.claim]
        held = [finding for finding in claimed if finding.alike > 1]
        return theme_summary([(f.claim, 0) for f in held or claimed], [(name, 0) for name, _ in self.spoken])


def find_themes(
    question: Question,
    exhibits: Sequence[Exhibit],
    *,
    most: int = MOST_THEMES,
    focus: Sequence[str] = (),
    lean: int | None = None,
    naming: int = 1,
) -> ThemeReport:
    """What people say: on what the question names first, then what most people say alike.

    With `focus`, the words that are asked about, one finding of each with everybody who speaks of it. With a `lean`,
    given or asked for, what surely leans so goes first and what leans otherwise is left out. Where nothing is found,
    `naming` sentences or titles that only name the product are shown. Linear in the length of
    the texts, of which `READ_IN_ALL` characters are read; runs in a thread where others wait.
    """
    lean = lean_wanted(question.text) if lean is None else lean
    shares = (READ_IN_ALL // max(1, len(exhibits)), 2_000)
    texts = [beginning(text)[: max(shares)] for e in exhibits for text in (*e.item.texts, e.item.place or "")]
    subject = Subject.of(question, texts)
    index = SentenceIndex.of(exhibits, subject)
    wanted = _named_aspects(question, subject)
    if focus:
        topics = {topic.name: topic for topic in (claims.named_topic(word, index) for word in focus)}
        every = [_spoken_of(topic, lean, plainly=True) for topic in topics.values()]
        findings = [finding for finding in every if finding.passages]
        chosen = findings[:most]
    else:
        topics = _topics(question, exhibits, index, wanted)
        findings, shown = _findings(topics.values(), lean, wanted)
        chosen = _chosen(findings, wanted, lean)[:most]
        few = min(most, _FEW_THEMES if lean is None else _FEW_ANSWERS)
        if len(chosen) < few:
            headings = {finding.name for finding in chosen if lean is None or finding.leans(lean)}
            terms = {term for topic in topics.values() if title_of(topic.name) in headings for term in topic.terms}
            voices = _voices(index, topics.values(), lean, shown, terms)
            chosen += islice(voices, few - len(chosen))
        chosen = sorted(spread(chosen), key=lambda f: (f.name.lower() not in wanted, not f.leans(lean)))
        if not chosen:
            named = _named_in(exhibits, index)
            chosen = sorted(named, key=lambda f: not says_something(f.claim, follows=True))[:naming]
    people = sorted(((topic.name, len(topic.mentions)) for topic in topics.values()), key=lambda entry: -entry[1])
    spoken = tuple(entry for entry in people if entry[1] >= (SHARED if lean is None else len(exhibits) + 1))
    several = question_parts(question.text).kind == "comparison"
    return ThemeReport(
        f"What people {VERBS[lean]} about {_headline(question, subject, wanted, lean)}",
        _summary(chosen, topics, wanted, lean, spoken),
        tuple(chosen),
        () if several else _suggestions(subject.name or "it", chosen, findings, spoken, lean),
        spoken,
    )


def _named_aspects(question: Question, subject: Subject) -> tuple[str, ...]:
    """The aspects that a question names."""
    named = (aspect.name for aspect in aspects_in(subject.pattern.sub(" ", question.text)))
    return tuple(name for name in named if name != KIND)  # `Notion app` is Notion


def _headline(question: Question, subject: Subject, wanted: Iterable[str], lean: int | None) -> str:
    """What the headline is about: aspects asked about, the product, or the words searched for."""
    part = question_parts(question.text).aspect
    # `the lid of the Ember mug`, a part that is no known aspect
    named = " and ".join(sorted(wanted)) or part * (part.islower() and f"the {part} of " in question.text)
    if named and subject.name:
        return f"the {named} of {subject.name}"
    return (subject.name if lean else "") or one_line(search_words(question.text))


def _topics(
    question: Question, exhibits: Sequence[Exhibit], index: SentenceIndex, wanted: Iterable[str]
) -> dict[str, SharedSubject]:
    """The subjects by name: those the question names, then those that most people share."""
    headings = (f"{exhibit.item.title} {exhibit.item.place or ''}" for exhibit in exhibits)
    stated = " ".join((question.text, question.about, *claims.own_kinds(index), *headings))
    unfit = {aspect.name for aspect in aspects() if not aspect.fits(stated)}
    shared = [topic for topic in claims.find_topics(index) if unfit.isdisjoint(topic.terms)]
    topics = {name: claims.named_topic(name, index) for name in wanted}
    seen: list[SharedSubject] = []
    for topic in shared:
        # `lost` of those who lost weight is left out
        if topic.terms.isdisjoint(wanted) and not any(map(topic.is_within, seen)):
            topics[topic.name] = topic
            seen.append(topic)
    return topics


def _findings(
    topics: Iterable[SharedSubject], lean: int | None, wanted: Sequence[str]
) -> tuple[list[ThemeFinding], list[Statement]]:
    """Claims on each subject, and the statements they quote: on those asked about first, then what most say alike.

    Of few people's words those come first that judge or measure, by who speaks of their subject. People who are not
    quoted before are preferred.
    """
    findings: list[ThemeFinding] = []
    shown: list[Statement] = []
    for topic in topics:
        named = topic.name in wanted
        groups = list(islice(claims.groups_of(topic, lean), _MOST_GROUPS))
        held = [_claim(topic, *group) for group in groups[:_MOST_CLAIMS] if len(group[1]) >= SHARED]
        held += _sides(topic, lean, held)
        shown += (claim for claim, members in groups[:_MOST_CLAIMS] if len(members) >= SHARED)
        if not held:
            heard = {statement.sentence.person for statement in shown}
            new = [group for group in groups if not _is_repeated(group[0], shown)]
            fresh = [group for group in new if _is_telling(*group)]
            if named and not fresh:  # plain words are an answer, too
                fresh = [group for group in new if group[0].tells][:1]
            fresh.sort(key=lambda group: group[0].sentence.person in heard)
            chosen = fresh[: _MOST_ANSWERS if named else 1]
            shown += (claim for claim, _ in chosen)
            held = [_claim(topic, *group) for group in chosen]
        if not held and named and topic.mentions:
            held = [_spoken_of(topic, lean)]
        findings += held
    order = sorted(
        findings,
        key=lambda f: (f.name.lower() not in wanted, not f.leans(lean), -_weight(f), f.weak, -f.speaking),
    )
    return list(told_once(order)), shown


def _weight(finding: ThemeFinding) -> int:
    """People who hold a claim of enough people, before what fewer say of a subject."""
    return finding.alike if finding.alike >= SHARED else 0


def _is_telling(claim: Statement, members: Sequence[Statement]) -> bool:
    """Whether few people's words on a subject are worth showing: said by two, an opinion, or likely informative."""
    sure = len(members) > 1 or claim.lean is not None
    return claim.tells and (sure or claim.informativeness() >= claims.INFORMATIVE)


def _is_repeated(statement: Statement, shown: Iterable[Statement]) -> bool:
    """Whether a statement says what one that is shown says, with other numbers or more beside it."""
    return any(
        2 * len(statement.content & other.content) > len(statement.content | other.content)
        or (len(other.content) > 1 and other.content <= statement.content)
        for other in shown
    )


def _sides(topic: SharedSubject, lean: int | None, held: Sequence[ThemeFinding]) -> Iterator[ThemeFinding]:
    """What enough people praise or complain of, each in words of their own; none that a claim counts."""
    counted = {passage.text for finding in held for passage in finding.passages}
    for side, kind, words in _SIDES:
        if lean is not None and side != lean:
            continue
        people: dict[str, Statement] = {}
        for entry in sorted(
            topic.statements, key=lambda e: (claims.stands_alone(e), e.polite, e.informativeness()), reverse=True
        ):
            if entry.lean == side and not (entry.asks or entry.foreign or entry.sentence.heading):
                people.setdefault(entry.sentence.person, entry)
        members = list(people.values())
        fresh = [member for member in members if member.sentence.text not in counted]
        if len(members) >= SHARED and 2 * len(fresh) > len(members) and claims.stands_alone(members[0]):
            quoted = _quoted(members[0])
            text = side_sentence(title_of(topic.name), words, quoted, len(members), len(topic.mentions))
            passages = tuple(map(_passage, members))
            yield ThemeFinding(
                title_of(topic.name), text, kind, passages, quoted, len(members), len(topic.mentions), side=words
            )


def _claim(topic: SharedSubject, claim: Statement, members: Sequence[Statement]) -> ThemeFinding:
    quoted = _quoted(claim)
    speaking = len(topic.mentions)
    # a heading that the words are not about says nothing: `Pair` above `so each pair had to plan five tests`
    headed = len(members) > 1 or topic.heads(claim)
    name = title_of(topic.name) if headed else VOICE
    text = claim_sentence(name, quoted, len(members), speaking if headed else 1)
    passages = tuple(map(_passage, members))
    return ThemeFinding(
        name, text, _kind(members), passages, quoted, len(members), speaking, weak=claim.weak and not topic.is_common
    )


def _spoken_of(topic: SharedSubject, lean: int | None, *, plainly: bool = False) -> ThemeFinding:
    """A subject with one sentence of each person who speaks of it, or does so plainly, the most telling first."""
    fitting = [entry for entry in topic.statements if lean is None or entry.lean != -lean]
    best: dict[str, Statement] = {}
    for statement in sorted(fitting, key=lambda entry: _telling(entry, lean), reverse=True):
        best.setdefault(statement.sentence.person, statement)
    mentions = {} if plainly else topic.mentions
    claim = next(claims.groups_of(topic, lean), None)
    if claim and len({*best, *mentions}) == 1:
        return _claim(topic, *claim)
    opposed = {entry.sentence.person for entry in topic.statements} - set(best)
    others = [s for person, s in mentions.items() if person not in best and person not in opposed]
    passages = [*map(_passage, best.values()), *map(_mention, others)]
    sides = Counter(entry.lean for entry in best.values() if entry.lean is not None)
    text = subject_sentence(title_of(topic.name), len(passages), sides[1], sides[-1]) if passages else ""
    shown = one_side(passages, lean)
    return ThemeFinding(title_of(topic.name), text, _kind(list(best.values())), shown, "", 0, len(passages))


def _quoted(statement: Statement) -> str:
    """A sentence as it is quoted."""
    return without_stop(statement.sentence.text)


def _telling(entry: Statement, lean: int | None) -> tuple[bool, bool, float]:
    """How well a statement shows its subject: on the wanted side, sure, informative."""
    wanted = lean is not None and entry.lean == lean
    return wanted, not entry.sentence.doubted and not entry.asks, entry.informativeness()


def _chosen(findings: Sequence[ThemeFinding], wanted: Sequence[str], lean: int | None) -> list[ThemeFinding]:
    """What is said of subjects of enough people; where that is little, what is said of those of two."""
    enough = [f for f in findings if f.name.lower() in wanted or f.speaking >= SHARED or (f.side and f.alike > 1)]
    if lean is not None and any(finding.leans(lean) for finding in findings):
        enough = [finding for finding in enough if finding.leans(lean) or finding.name.lower() in wanted]
    few = [_alone(finding) for finding in findings if finding not in enough and (lean is None or finding.leans(lean))]
    return enough + few[: max(0, _FEW_THEMES - len(enough))]


def _alone(finding: ThemeFinding) -> ThemeFinding:
    """What one person says of something that hardly anybody else speaks of, as a voice."""
    if finding.alike != 1:
        return finding
    return replace(finding, name=VOICE, text=claim_sentence(VOICE, finding.claim, 1, 1), speaking=1)


def _voices(
    index: SentenceIndex,
    topics: Iterable[SharedSubject],
    lean: int | None,
    shown: Iterable[Statement],
    headings: Set[str],
) -> Iterator[ThemeFinding]:
    """Sentences about the product that stand by themselves, one of each person who is not quoted yet.

    None speaks of the terms of `headings`, on which somebody is quoted already.
    """
    statements = list(shown)
    heard = {statement.sentence.person for statement in statements}
    subjects = {term for topic in topics for term in topic.terms} | {aspect.name for aspect in aspects()}
    candidates = []
    for number, sentence in enumerate(index.sentences[:_MOST_VOICES]):
        if (
            sentence.doubted
            or sentence.person in heard
            or not headings.isdisjoint(sentence.terms)
            or not index.is_about(number)
        ):
            continue
        statement = claims.statement_of(sentence, index.subject)
        if statement.tells and (lean is None or (statement.lean == lean and statement.answers(lean))):
            # it must say what it is about, and something about that: `It is very helpful` may be of anything
            spoken = not subjects.isdisjoint(sentence.terms)
            named = index.subject.is_named(sentence.text)
            sure = statement.lean is not None
            answers = sure and lean is not None and sentence.topic
            worth = statement.informativeness(shared=spoken)
            telling = worth >= _TELLING_ALONE or (sure and spoken)
            if statement.content and (answers or ((named or spoken) and telling)):
                candidates.append((worth, -number, statement))
    people: set[str] = set()
    for *_, statement in sorted(candidates, key=lambda entry: entry[:2], reverse=True):
        sentence = statement.sentence
        if sentence.person not in people and not _is_repeated(statement, statements):
            people.add(sentence.person)
            statements.append(statement)
            quoted = without_stop(sentence.text)
            text = claim_sentence(VOICE, quoted, 1, 1)
            yield ThemeFinding(VOICE, text, _kind([statement]), (_passage(statement),), quoted, 1, 1)


def _named_in(exhibits: Sequence[Exhibit], index: SentenceIndex) -> Iterator[ThemeFinding]:
    """The first sentence or title of each exhibit that names the product, where it says which one is meant."""
    subject = index.subject
    first: dict[str, tuple[str, str | None]] = {}
    for number, sentence in enumerate(index.sentences[:_MOST_VOICES]):
        if subject.is_named(sentence.text) and index.is_about(number):
            first.setdefault(sentence.label, (sentence.text, sentence.comment_id))
    for exhibit in exhibits[:_MOST_VOICES]:
        item = exhibit.item
        if not is_identified(item, subject) or is_excluded(item, subject):
            continue
        text, comment_id = first.get(exhibit.label) or (one_line(item.texts[0]), None)
        # a question says nothing, nor do two names alone
        empty = text.endswith(("?", "？")) or (_VERSUS.search(text) and not claims.is_statement(text))
        if 0 < len(text) <= LONGEST_PASSAGE and subject.is_named(text) and not empty:
            words = claim_sentence(VOICE, without_stop(text), 1, 1)
            passage = ThemePassage(exhibit.label, comment_id, text)
            yield ThemeFinding(VOICE, words, "other", (passage,), without_stop(text), 1, 1)


def _passage(statement: Statement) -> ThemePassage:
    sentence = statement.sentence
    return ThemePassage(sentence.label, sentence.comment_id, sentence.text, statement.lean, sentence.person)


def _mention(sentence: Sentence) -> ThemePassage:
    return ThemePassage(sentence.label, sentence.comment_id, sentence.text)


def _kind(members: Sequence[Statement]) -> FindingKind:
    leans = Counter(member.lean for member in members if member.lean is not None)
    if len(leans) == 1 and leans.total() >= max(min(2, len(members)), len(members) / 2):
        return _KINDS[next(iter(leans))]
    wishes = sum(member.wish for member in members)
    return "request" if members and not leans and 2 * wishes >= len(members) else "other"


def _summary(
    chosen: Sequence[ThemeFinding],
    topics: Mapping[str, SharedSubject],
    wanted: Iterable[str],
    lean: int | None,
    spoken: Sequence[tuple[str, int]],
) -> str:
    """What most people say, and speak of; before it, how few answer what was asked."""
    openings = []
    for name in wanted:
        people = len(topics[name].mentions) if name in topics else 0
        if people < SHARED:
            noun = "person speaks" if people == 1 else "people speak"
            openings.append(f"{in_words(people).capitalize()} {noun} of the {name}.")
    if side := unsure_side(chosen, lean):
        openings.append(f"No sentence was recognised as {side}; some may still be.")
    return theme_summary([(f.claim, f.alike) for f in chosen if f.claim and not f.side], spoken, " ".join(openings))


def _suggestions(
    name: str,
    chosen: Sequence[ThemeFinding],
    findings: Sequence[ThemeFinding],
    spoken: Sequence[tuple[str, int]],
    lean: int | None,
) -> tuple[str, ...]:
    """Questions that show more: the sides of the product, then aspects of it that no claim shows."""
    questions = []
    for side, words in ((-1, "What annoys people about"), (1, "What do people like about")):
        # where one side is asked for, sentences of the other were left out, so it is worth asking
        known = lean is None and any(finding.leans(side) for finding in findings)
        if known or lean == -side:
            questions.append(f"{words} {name}?")
    shown = {finding.name.lower() for finding in chosen}
    others = [other for other, _ in spoken if other not in shown and aspects_named(other)]
    questions += [f"What do people say about the {other} of {name}?" for other in others]
    return tuple(questions[:_MOST_SUGGESTIONS])


def is_spoken_of(name: str, text: str) -> bool:
    """Whether a text speaks of the theme with that name."""
    named = (aspect.pattern for aspect in aspects() if aspect.name == name.lower())
    pattern = next(named, None)
    if name == VOICE or (pattern is not None and pattern.search(text)):
        return True
    return claims.holds_term(text, name)
