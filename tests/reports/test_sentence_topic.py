"""Whether a sentence speaks of a theme, or only holds its word."""

from __future__ import annotations

import pytest
import regex

from api.core.domain import Question
from api.reports.keyless.aspects import aspects
from api.reports.keyless.product_mentions import Subject
from api.reports.keyless.sentence_topic import is_about_theme

LAMP = Subject.of(Question("Glow Lamp", "a desk light with an app"))
PATTERNS: dict[str, regex.Pattern[str]] = {aspect.name: aspect.pattern for aspect in aspects()}


@pytest.mark.parametrize(
    ("theme", "sentence"),
    [
        ("app", "The app forgets its scenes."),
        ("app", "It’s literally an Android app in a case."),
        ("app", "The Android app forgets its scenes."),
        ("app", "The Glow app is slow."),
        ("battery", "A battery nobody can swap."),
        ("battery", "It charges in an hour."),
        ("price", "What I like: the price, the light."),
        ("price", "Dommage, à ce prix-là."),
        ("app", "In the app I look, and the app forgets it."),
        ("battery", "Leave it off the charger, the battery is awful."),
        ("screen", "I built a shelf for it, the screen wobbles."),
        ("connection", "Set up took a minute and sync works."),
        ("battery", '"The battery is awful"'),
        ("battery", "Sitzt gut, sieht gut aus, der Akku ist top."),
        ("battery", "Abonnement trop cher à mon goût, batterie de treize jours au top."),
    ],
)
def test_the_word_of_a_theme_is_what_is_spoken_of(theme: str, sentence: str) -> None:
    """By name, owner or clause; where one mention is beside the point another counts."""
    assert is_about_theme(sentence, PATTERNS[theme], LAMP)


@pytest.mark.parametrize(
    ("theme", "sentence"),
    [
        ("battery", "It glows."),
        ("battery", "Akku, Preis, Bildschirm und die App im Test."),
        ("price", "Trois mois avec la lampe : lumière, autonomie, export et prix."),
        ("battery", "Testei tradução, câmera e bateria no dia a dia."),
        ("battery", "Glow Lamp long-term: 9 months, 4 battery packs, 1 big complaint"),
        ("updates", "Dark by lunch, even after the updates."),
        ("battery", "Lost the cable and could not charge it with anything else."),
        ("battery", "The battery app froze twice."),
        ("screen", "Glow announces the Lamp Pro with a tiny screen."),
        ("price", "What the price was, which lamp broke first, and one bad night."),
        ("screen", "Two minutes later the logo was on screen."),
        ("app", "You find it in the new app."),
        ("connection", "My speaker plays over Bluetooth."),
        ("app", "An app-controlled light."),
        ("connection", "The WiFi desk light stands there."),
        ("connection", "Can a phone hold two Bluetooth devices?"),
        ("connection", "I soldered the wifi adapter."),
        ("app", "Open tabs kill the Gmail app."),
        ("app", "Is there the Spotify Android app?"),
        ("app", "The myBank app works next to it."),
        ("app", "I made a little timer app with it."),
        ("app", "Here is the truth about the app."),
        ("battery", "In this video the battery runs."),
        ("export", "Sync, export, passwords, and whether you need it."),
        ("battery", "Price, battery, screen: the long list."),
        ("battery", "Please leave it off, recharge at night."),
        ("app", "Forget apps, people use switches."),
        ("battery", "1. Take out the battery for a minute"),
        ("connection", "**Expected:** it comes on after the morning sync"),
        ("screen", "Tablets, e-ink frames, a Glow Lamp: post it all."),
        ("app", "Glow app took a fee."),
        ("app", "Set it with a key, not `glow-app`."),
        ("account", "Glow 2 (signed in with an account) stays dark."),
        ("price", "Parts come at a 'reasonable price', whatever that means."),
        ("battery", "The board needs neither battery nor case."),
        ("screen", "It is dimmer than my screen, compared with the display of a friend."),
        ("sleep", "In v2 sleep ids are numbers."),
        ("battery", "It hides the battery level."),
        ("subscription", "Our subscription names turned into numbers."),
        ("connection", "Our glow-sync cuts the rest."),
        ("battery", "We open the Glow Lamp: magnets, battery, lens."),
        ("price", "Helligkeit, Verbrauch, Farben in Stufen und der Preis von 70 Euro."),
        ("battery", "一周使用，续航、亮度全测。"),
        ("sleep", "Con turnos cambia la hora de sueño a mano."),
    ],
)  # fmt: skip
def test_a_word_beside_the_point_shows_nothing(theme: str, sentence: str) -> None:
    """Where, by what and of which kind something is; what is another's, announced or told to do."""
    assert not is_about_theme(sentence, PATTERNS[theme], LAMP)
