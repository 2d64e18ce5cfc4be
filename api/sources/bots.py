"""Reddit's programs that post: known by name, since nothing in an answer says what they are."""

from __future__ import annotations

AUTOMATIC = "written by a bot"
"""Why a post of one is not judged."""
_NAMES = frozenset(
    """
    automoderator botdefense visualmod
    alphabet_order_bot anti-gif-bot auddbot autotldr autowikibot b0trank bot-sleuth-bot
    botrickbateman clickablelinkbot colorizebot commonmisspellingbot converter-bot
    couldwouldshouldbot decronym gifreversingbot goodbot_badbot haiku-bot haikusbot
    i-am-dad-bot image_linker_bot imguralbumbot kickopenthedoorbot linkfixerbot
    magic_eye_bot mentioned_videos metric_units mtgcardfetcher nice-scores nwordcountbot
    phonebatterylevelbot profanitycounter qualityvote remindmebot repostsleuthbot roboragi
    savevideo savevideobot sneakpeekbot stabbot stabbot_crop sub_doesnt_exist_bot
    substitute-bot the_timezone_bot timestampbot timezone_bot totes_meta_bot totesmessenger
    tweetposter twitterinfo_bot useles-converter-bot userleansbot vredditdownloader
    vredditshare wikimobilelinkbot wikipedia_answer_bot wikipediaposter wikisummarizerbot
    wikitextbot youtubefactsbot
    """.split()
)
"""Well-known programs, in lower case; a name that ends in `bot` may be a person's: Talbot."""
_MOD_TEAM = "-modteam"
"""The end of the accounts under which removals are explained: `gadgets-ModTeam`."""


def is_bot(name: str) -> bool:
    """Whether a program writes under this name."""
    plain = name.lower()
    return plain in _NAMES or plain.endswith(_MOD_TEAM)
