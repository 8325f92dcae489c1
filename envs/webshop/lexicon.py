"""Words of the generated catalogue. No word is part of another one, so that a text match is a word match."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Department:
    """``nouns``: things sold; ``attributes``: what they can be; ``choice``: name and values of an option."""

    name: str
    nouns: tuple[str, ...]
    attributes: tuple[str, ...]
    choice: tuple[str, tuple[str, ...]]


COLOURS = ("red", "blue", "green", "white", "pink", "grey")

_SIZE = ("size", ("small", "medium", "large", "giant"))
_PACK = ("pack", ("single", "double", "triple", "dozen"))
_LENGTH = ("length", ("short", "middling", "long", "endless"))
_FINISH = ("finish", ("matte", "glossy", "satin", "rough"))


def _department(name: str, nouns: str, attributes: str, choice: tuple[str, tuple[str, ...]]) -> Department:
    return Department(name, tuple(nouns.split()), tuple(attributes.split()), choice)


DEPARTMENTS = (
    _department(
        "clothing", "jacket sweater skirt blouse", "warm washable stretchy hooded woven breathable", _SIZE
    ),
    _department(
        "shoes", "sandal boot slipper loafer", "padded laced waterproof flexible quilted vegan", _SIZE
    ),
    _department(
        "kitchen", "kettle skillet blender ladle", "nonstick stackable ovenproof insulated steel quiet", _SIZE
    ),
    _department(
        "lighting",
        "lantern chandelier torch candle",
        "dimmable rechargeable solar scented flickering slim",
        _FINISH,
    ),
    _department(
        "furniture", "shelf stool wardrobe couch", "foldable wooden velvet narrow sturdy antique", _FINISH
    ),
    _department(
        "computing",
        "keyboard monitor router tablet",
        "wireless backlit curved compact silent rugged",
        _FINISH,
    ),
    _department(
        "audio",
        "speaker headphone microphone amplifier",
        "portable stereo noiseproof handmade vintage digital",
        _LENGTH,
    ),
    _department(
        "beauty",
        "shampoo lotion perfume lipstick",
        "organic fragrant soothing oilfree moisturizing mineral",
        _PACK,
    ),
    _department(
        "grocery", "coffee cereal honey pasta", "roasted glutenfree sugarless raw spicy smoked", _PACK
    ),
    _department(
        "toys", "puzzle robot kite doll", "musical educational magnetic wobbly inflatable plush", _PACK
    ),
    _department(
        "office", "notebook stapler pencil binder", "recycled ruled refillable spiral erasable heavy", _PACK
    ),
    _department(
        "garden",
        "shovel hose planter rake",
        "rustproof telescopic hanging galvanized coiled ceramic",
        _LENGTH,
    ),
    _department(
        "sports",
        "racket dumbbell helmet paddle",
        "adjustable grippy aerodynamic vented balanced floating",
        _SIZE,
    ),
    _department(
        "pets",
        "leash aquarium birdcage harness",
        "chewproof reflective soft elevated tinted knitted",
        _LENGTH,
    ),
)

NOUNS = frozenset(n for d in DEPARTMENTS for n in d.nouns)
