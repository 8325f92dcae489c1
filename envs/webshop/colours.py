"""The colour words of the original scorer, in its order (alphabetical), and what it does with them.

Source: interface data of WebShop (princeton-nlp/WebShop, MIT licence): the first word of this list that is a
substring of an option decides what the option counts as.
"""

from __future__ import annotations

COLOURS = tuple(
    """alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown
    burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee
    cognac copper coral cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold
    granite grape graphite grass gray green grey heather indigo ivory ivy khaki lavender lemon
    leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor mushroom
    mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust
    sand sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger
    turquoise violet walnut wheat white wine yellow""".split()
)


def first_colour(option: str | tuple[str, str]) -> str | tuple[str, str]:
    """The first colour word found in ``option``, else ``option``.

    For a ``(name, value)`` pair ``in`` tests equality with one of the two, as in the original.
    """
    return next((c for c in COLOURS if c in option), option)
