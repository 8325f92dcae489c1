"""Names of things with the highest number each is worth a token for: what a word-level tokenizer must know.

Receptacle and object types are those of ALFWorld's games (AI2-THOR names in lower case); the numbers are the
highest that occur in the official validation games, rounded up.
"""

from __future__ import annotations

RECEPTACLES = {
    "armchair": 4, "bathtubbasin": 2, "bed": 2, "cabinet": 30, "cart": 2, "coffeemachine": 2, "coffeetable": 3,
    "countertop": 6, "desk": 3, "diningtable": 4, "drawer": 30, "dresser": 3, "fridge": 2, "garbagecan": 3,
    "handtowelholder": 4, "laundryhamper": 2, "microwave": 2, "ottoman": 3, "safe": 3, "shelf": 16,
    "sidetable": 6, "sinkbasin": 3, "sofa": 3, "stoveburner": 8, "toaster": 2, "toilet": 3,
    "toiletpaperhanger": 3, "towelholder": 4, "tvstand": 3,
}  # fmt: skip

OBJECTS = (
    "alarmclock apple baseballbat basketball bathtub blinds book boots bowl box bread butterknife candle cd "
    "cellphone chair cloth creditcard cup curtains desklamp dishsponge egg floorlamp fork glassbottle handtowel "
    "houseplant kettle keychain knife ladle laptop laundryhamperlid lettuce lightswitch mirror mug newspaper "
    "painting pan papertowelroll pen pencil peppershaker pillow plate plunger poster pot potato remotecontrol "
    "saltshaker scrubbrush showerdoor showerglass sink soapbar soapbottle spatula spoon spraybottle statue "
    "stoveknob teddybear television tennisracket tissuebox toiletpaper tomato towel vase watch wateringcan "
    "window winebottle"
)


def entities() -> dict[str, int]:
    """Type -> highest number with a token of its own."""
    return RECEPTACLES | {o: 7 for o in OBJECTS.split()}
