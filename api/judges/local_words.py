"""Word lists of the local judge, written by hand from general knowledge of English."""

from __future__ import annotations

SMALL = frozenset(
    ("a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "but",
     "by", "can", "do", "for", "from", "get", "had", "has", "have", "he", "her", "his", "how", "i",
     "if", "in", "into", "is", "it", "its", "just", "me", "my", "no", "not", "of", "on", "one",
     "or", "our", "out", "s", "she", "so", "than", "that", "the", "their", "them", "then", "they",
     "this", "to", "too", "up", "us", "vs", "was", "we", "were", "what", "when", "which", "who",
     "will", "with", "you", "your")
)  # fmt: skip
"""Words that say nothing about a topic."""
KINDS = frozenset(
    ("app", "band", "bike", "board", "book", "browser", "camera", "car", "console", "device",
     "display", "drone", "earbuds", "editor", "gadget", "game", "headphones", "headset", "keyboard",
     "lamp", "laptop", "light", "machine", "monitor", "mouse", "mug", "pad", "pen", "phone",
     "player", "printer", "pro", "recorder", "ring", "robot", "router", "scooter", "service",
     "shoe", "site", "software", "speaker", "tablet", "tool", "tracker", "vacuum", "watch",
     "website")
)  # fmt: skip
"""Words that say what kind of thing a product is."""
PLAIN = frozenset(
    """
    abstract acorn agent air alpha amazon amber anchor anvil apple arc arch arm arrow ash aspect
    atlas atom audible aura aurora autumn axe axis baby bamboo banana band bank bar bark base
    basis basket bass bat beacon beam bean bear beat beaver bee bell bench berry beta bird bison
    black blade blaze block bloom blossom blue board boat bold bolt bone boost boot border bottle
    bounce bow bowl box branch brave bread breeze brick bridge bright broom brush bubble buffer
    bug bullet bumble bunny butter button cabin cactus camel candle cane canopy canvas canyon card
    cargo carrot castle cat cave cedar chain chair chalk champion charm chart chase check cherry
    chip chord chrome circle clarity clay clear cliff clip cloud clover coach coal coast cobra
    coco coil coin comet compass copper coral core cork corner cosmos cotton cove crane crater
    cream creed crest cricket crow crown cruise crystal cube current curve dash dawn day deck deer
    delta desk diamond dice discord discover dish dog dolphin domain door dot dove dragon dream
    drift drive drop drum duck dune dust eagle earth ease east echo eclipse edge elder element
    elephant elevate elm ember emerald engine epic essence ever evergreen excel express fable
    falcon feather fern fever field finch fire first fish flag flame flare flash fleet flint flow
    flower fluid flux fly focus forest forge fortune fox frame framework freedom friday frog frost
    fuel fusion galaxy gap garden garnet gate gecko gem ghost giant ginger glacier glass globe
    glow gold goose grain grammar granite grape grass gravity green grid grove guardian guild gull
    hammer harbor hare harmony harvest haven hawk hazel head heart hearth helix hero hive honey
    hood hook hope horizon horn horse hub hunter impact indigo ink insight iris iron island ivory
    ivy jade jaguar jasper java jet jewel journey joy jump jungle juniper kayak key kindle king
    kite knight ladder lake lamb lamp lantern lark laser launch lava leaf leap legend lemon lens
    level liberty light lily lime limit line linear link lion lock loft loom loop lotus luna lynx
    magic magnet mango mantle maple marble march mask mast match matrix matter maze meadow medium
    melon mercury merge mesh meta metal meteor mic mint mirror mist mix mocha monday monitor monk
    moon moose morning mosaic moss moth motion mountain mouse nail native nature navy needle nest
    net night nimbus noble north notch note notion nova oak oasis object oboe obsidian ocean
    octave olive omega onion onyx opal orange orbit orchid origin otter owl oxygen palm panda
    panel panther paper parachute parallel path peach peak pearl pebble pelican penguin pepper
    perch petal phoenix piano pigeon pilot pine pioneer pirate pivot planet plank plum point polar
    pond poppy port post prairie prime prism probe pulse puma pump pure puzzle quartz quest quill
    rabbit radar rain raven ray reach reason rebel reed reef relay relic remarkable ridge ring
    ripple river robin robot rock rocket root rope rose ruby rush saddle safari sage sail salt
    sand sandbox sapphire saturn scale scout scribe sea seal season seed sense shadow shark shell
    shield shift shine ship signal silk silver simple sketch sky slack slate sloth smoke snail
    snake snap snow sonar sonic soul sound south space spark sparrow spear spectrum sphere spider
    spin spirit splash spring sprout spruce square squirrel stack star steam steel stem step stone
    storm stream stride stripe studio summer summit sun sunday surface surge swan swift switch
    sword target tea teams temple tempo tent thistle thorn thread thunder tide tiger timber tin
    toast token topaz torch totem tower trail train tree trek triangle tribe trident trunk tulip
    tundra turtle twin twist ultra unity vault vector velvet venture verse vest vibe vine violet
    viper vision vista volt voyage walnut wasp wave web whale wheel whisper white whoop willow
    wind window wing winter wise wolf wonder wood word work wren yellow yeti zebra zen zenith
    zephyr zero zest zip zone zoom
    """.split()
)
"""Everyday words that brands like to take as their names."""
CALENDAR = frozenset(
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january",
     "february", "march", "april", "june", "july", "august", "september", "october", "november",
     "december", "spring", "summer", "autumn", "winter")
)  # fmt: skip
"""Days, months and seasons: written with a capital without being a brand."""
TALK = frozenset(
    ("account", "android", "app", "battery", "bought", "broken", "bug", "buy", "buying", "cancel",
     "charge", "charger", "compared", "customer", "device", "export", "feature", "firmware",
     "hardware", "install", "ios", "integration", "login", "model", "month", "offline", "order",
     "ordered", "owner", "plan", "plugin", "premium", "price", "pricing", "product", "purchase",
     "refund", "replacement", "return", "returned", "review", "sensor", "settings", "setup",
     "ship", "shipped", "software", "subscription", "support", "switch", "switched", "sync",
     "template", "test", "tested", "unboxing", "unit", "update", "upgrade", "user", "version",
     "warranty", "worth", "year")
)  # fmt: skip
"""What owners and buyers of a product talk about."""
FOREIGN = frozenset(
    ("al", "au", "aus", "auf", "avec", "bir", "bu", "che", "con", "como", "da", "das", "de", "del",
     "della", "dem", "den", "der", "des", "di", "die", "dla", "du", "ein", "eine", "el", "en", "es",
     "est", "et", "för", "gli", "het", "ich", "il", "ist", "je", "jest", "la", "las", "le", "les",
     "los", "mais", "mas", "mit", "mon", "muy", "na", "nicht", "nie", "nu", "não", "och", "para",
     "pas", "per", "por", "pour", "que", "qui", "se", "sich", "sie", "som", "sur", "sus", "un",
     "una", "une", "van", "ve", "voor", "wie", "y", "çok", "için", "się")
)  # fmt: skip
"""Small words of other languages."""
ACCESSORIES = frozenset(
    ("adapter", "bag", "battery", "cable", "case", "charger", "charging", "cleaner", "clip",
     "cover",
     "decal", "dock", "film", "holder", "holster", "product", "lens", "lid", "mount", "pouch",
     "protector", "refill", "replacement", "screen", "skin", "sleeve", "stand", "sticker", "strap",
     "tips", "wristband")
)  # fmt: skip
"""Things sold for a product."""
ARTICLES = frozenset(("a", "an", "no", "some", "any"))
"""What stands before an ordinary word."""
TIMES = frozenset(("each", "every", "last", "next", "this"))
"""What stands before a day or a season."""
