"""The closed vocabulary of the generated world. Names are random combinations.

The lists are short on purpose: a word-level tokenizer of well under 1,500 entries covers all texts, and an
entity held out for the test is a new combination of words that training has seen.
"""

FIRST = (
    "Ada Bram Cleo Dario Edda Finn Greta Hugo Ines Joren Kaya Lorin Mira Nils Orla Pavel Quinn Rosa "
    "Silas Tessa Udo Vera Wim Xenia Yara Zeno Alma Boris Carla Dunja Emil Freya Goran Hilda Ivo Jana "
    "Karel Lotte Marek Nadia"
).split()
STEM = (
    "Harrow Venn Kell Arden Marsh Tolland Brack Cray Dorn Elwick Farlow Garth Holm Ister Jarrow Kestrel "
    "Lund Morrow Nettle Orrin Pell Quill Rusk Selby Thorne Umber Varley Wick Yarrow Zell Ashby Birch "
    "Corley Dunmore Eskdale Fenwick Gorse Hadley Iden Juniper Kirby Linden Maple Norwood Oakes Penrose "
    "Raven Stroud Teal Upton Vale Weston Alder Bexley Cobham Dale Ember Flint Grove Heath"
).split()
CITY = "Port North South East West Old New Lower Upper Saint".split()
COMPANY = "Motors Mills Records Press Foods Steel Airways Books Pictures Bank".split()
LAND = "Republic Islands Kingdom Union Coast".split()
LAND_STEM = (
    "Kesh Talor Ombra Sarin Velda Norr Ustan Caldera Mirra Zanth Orvel Pharos Lumen Drava Tarn Isola "
    "Quen Rhova Bezan Aldis"
).split()
ADJECTIVE = (
    "Silver Golden Broken Silent Hidden Crimson Frozen Burning Distant Hollow Bright Wild Sleeping "
    "Lonely Bitter Gentle Paper Velvet Marble Copper Winter Summer Midnight Ancient"
).split()
NOUN = (
    "Lantern Valley Garden Mirror Harbor Crown Forest Letter Bridge Ruby Tower Drum Shadow Window Road "
    "Bell Compass Feather Stone Orchard Train Candle Mask Ladder Clock Storm Anchor Meadow Castle "
    "Violin"
).split()
HONORIFIC = "Captain Doctor Lady Baron Sister Master Judge Major".split()
JOB = "painter singer dancer pilot chemist poet lawyer farmer builder sailor".split()
KIND = "novel film song ballet play".split()
RIVER = (
    "Ansel Brenna Corva Dinas Eldra Fosse Galen Hessa Ilmen Jura Korin Lethe Mosa Nera Ottar Pirin".split()
)
CURRENCY = "Dorin Florin Tael Crest Sol Marka Penna Lira".split()
