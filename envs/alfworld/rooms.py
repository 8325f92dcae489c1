"""This project's own room templates and household knowledge for generated games.

Type names are ALFWorld's, so that a policy trained on generated games knows the words of the official
ones. Layouts are invented here; which object may lie where is plain household sense in ALFWorld's vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: object type -> receptacle types it is found in and may be put in, per kind of room
SPAWN: Mapping[str, Mapping[str, str]] = {
    "kitchen": {
        "Apple": "Fridge CounterTop DiningTable SinkBasin GarbageCan",
        "Egg": "Fridge CounterTop SinkBasin Microwave GarbageCan",
        "Tomato": "Fridge CounterTop DiningTable SinkBasin GarbageCan",
        "Potato": "Fridge CounterTop DiningTable SinkBasin Microwave GarbageCan",
        "Bread": "CounterTop DiningTable Fridge",
        "Lettuce": "CounterTop DiningTable Fridge SinkBasin",
        "Bowl": "Cabinet CounterTop DiningTable Fridge Shelf",
        "Cup": "Cabinet CounterTop DiningTable Fridge SinkBasin Shelf Microwave",
        "Mug": "Cabinet CounterTop CoffeeMachine DiningTable SinkBasin Shelf Microwave",
        "Plate": "Cabinet CounterTop DiningTable Fridge SinkBasin Shelf",
        "Fork": "Drawer CounterTop DiningTable SinkBasin",
        "Spoon": "Drawer CounterTop DiningTable SinkBasin",
        "Knife": "Drawer CounterTop DiningTable",
        "ButterKnife": "Drawer CounterTop DiningTable SinkBasin",
        "Spatula": "Drawer CounterTop DiningTable SinkBasin",
        "Ladle": "Drawer CounterTop Cabinet",
        "Pan": "StoveBurner CounterTop Cabinet",
        "Pot": "StoveBurner CounterTop Cabinet",
        "Kettle": "StoveBurner CounterTop Cabinet Shelf",
        "SaltShaker": "Cabinet CounterTop Drawer DiningTable Shelf",
        "PepperShaker": "Cabinet CounterTop Drawer DiningTable Shelf",
        "SoapBottle": "Cabinet CounterTop GarbageCan Shelf",
        "DishSponge": "Cabinet CounterTop Drawer SinkBasin",
        "WineBottle": "Cabinet CounterTop Fridge GarbageCan",
    },
    "bathroom": {
        "Candle": "CounterTop Toilet Cabinet Drawer Shelf SideTable",
        "Cloth": "Cabinet Drawer CounterTop SinkBasin BathtubBasin Shelf",
        "DishSponge": "CounterTop Drawer SinkBasin BathtubBasin Cabinet",
        "SoapBar": "CounterTop SinkBasin BathtubBasin Cabinet Drawer Toilet GarbageCan",
        "SoapBottle": "CounterTop Toilet Cabinet Shelf GarbageCan SideTable",
        "SprayBottle": "CounterTop Toilet Cabinet Shelf GarbageCan SideTable",
        "TissueBox": "CounterTop Shelf Drawer Cabinet SideTable",
        "ToiletPaper": "ToiletPaperHanger CounterTop Cabinet Drawer Toilet Shelf GarbageCan",
        "HandTowel": "HandTowelHolder CounterTop",
        "Towel": "TowelHolder BathtubBasin",
    },
    "bedroom": {
        "AlarmClock": "Desk Shelf SideTable Dresser",
        "Book": "Bed Desk Drawer Dresser SideTable Shelf",
        "Bowl": "Desk Shelf Dresser SideTable",
        "CD": "Drawer Desk Dresser SideTable Shelf GarbageCan",
        "CellPhone": "Bed Desk Drawer Dresser SideTable Safe",
        "CreditCard": "Drawer Desk Shelf SideTable Dresser ArmChair",
        "KeyChain": "Drawer Desk Shelf SideTable Dresser Safe ArmChair",
        "Laptop": "Bed Desk Dresser ArmChair",
        "Mug": "Desk Shelf SideTable Dresser",
        "Pen": "Desk Drawer Shelf Dresser SideTable GarbageCan",
        "Pencil": "Desk Drawer Shelf Dresser SideTable GarbageCan",
        "Pillow": "Bed ArmChair",
        "TissueBox": "Desk Drawer Shelf SideTable",
        "Watch": "Drawer Shelf Desk Dresser SideTable Safe",
    },
    "livingroom": {
        "Book": "CoffeeTable Sofa Dresser SideTable ArmChair Shelf",
        "Box": "DiningTable Sofa CoffeeTable SideTable",
        "Candle": "SideTable CoffeeTable DiningTable TVStand",
        "CellPhone": "Dresser SideTable CoffeeTable Sofa Drawer",
        "CreditCard": "Sofa CoffeeTable ArmChair Drawer SideTable TVStand Dresser",
        "KeyChain": "CoffeeTable SideTable Drawer Sofa ArmChair Dresser Safe",
        "Laptop": "Sofa CoffeeTable DiningTable ArmChair",
        "Newspaper": "Sofa CoffeeTable DiningTable SideTable Shelf ArmChair",
        "Pillow": "Sofa ArmChair",
        "Plate": "DiningTable CoffeeTable Shelf SideTable",
        "RemoteControl": "CoffeeTable Sofa SideTable Drawer TVStand ArmChair",
        "Statue": "CoffeeTable Shelf DiningTable SideTable Dresser TVStand",
        "TissueBox": "CoffeeTable SideTable DiningTable Shelf Drawer",
        "Vase": "Shelf CoffeeTable DiningTable SideTable Dresser",
        "Watch": "CoffeeTable Drawer SideTable Dresser Shelf Safe",
    },
}

CLEANABLE = frozenset(
    "Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork Kettle Knife Ladle Lettuce Mug Pan Plate Pot "
    "Potato SoapBar Spatula Spoon Tomato".split()
)
HEATABLE = frozenset("Apple Bread Cup Egg Mug Plate Potato Tomato".split())
COOLABLE = frozenset("Apple Bowl Bread Cup Egg Lettuce Mug Pan Plate Pot Potato Tomato WineBottle".split())
SLICEABLE = frozenset("Apple Bread Egg Lettuce Potato Tomato".split())
CONTAINERS = frozenset("Bowl Box Cup Mug Pan Plate Pot".split())
OPENABLE = frozenset("Cabinet Drawer Fridge Microwave Safe".split())
LAMP = "DeskLamp"
LAMP_STANDS = frozenset("Desk SideTable Dresser Shelf CoffeeTable".split())
#: kind of goal -> (types it works on, receptacle type that does it)
TRANSFORMS: Mapping[str, tuple[frozenset[str], str]] = {
    "clean": (CLEANABLE, "SinkBasin"),
    "heat": (HEATABLE, "Microwave"),
    "cool": (COOLABLE, "Fridge"),
}
#: kind of goal -> kinds of room where it is set
ROOMS_FOR: Mapping[str, tuple[str, ...]] = {
    "place": ("kitchen", "bathroom", "bedroom", "livingroom"),
    "look": ("bedroom", "livingroom"),
    "clean": ("kitchen", "bathroom"),
    "heat": ("kitchen",),
    "cool": ("kitchen",),
    "two": ("kitchen", "bathroom", "bedroom", "livingroom"),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """A room: how many of each receptacle type. ``held_out`` rooms appear only in ``mini-unseen``."""

    name: str
    kind: str
    receptacles: Mapping[str, int]
    held_out: bool


_TRAIN = {
    "kitchen": (
        "Fridge Microwave SinkBasin CounterTop*2 Cabinet*3 Drawer*2 DiningTable GarbageCan",
        "Fridge Microwave SinkBasin CounterTop Cabinet*3 Drawer*2 StoveBurner*2 Shelf",
        "Fridge Microwave SinkBasin CounterTop*2 Cabinet*2 Drawer*3 CoffeeMachine",
        "Fridge Microwave SinkBasin DiningTable CounterTop Cabinet*4 GarbageCan",
        "Fridge Microwave SinkBasin CounterTop Cabinet*2 Drawer*2 Shelf*2 DiningTable",
        "Fridge Microwave SinkBasin CounterTop*2 Cabinet*2 Drawer StoveBurner*2 GarbageCan CoffeeMachine",
    ),
    "bathroom": (
        "SinkBasin CounterTop Cabinet*3 Toilet GarbageCan BathtubBasin TowelHolder ToiletPaperHanger",
        "SinkBasin*2 CounterTop Drawer*3 Toilet GarbageCan Shelf HandTowelHolder",
        "SinkBasin CounterTop Cabinet*2 Drawer*2 Toilet GarbageCan ToiletPaperHanger HandTowelHolder",
        "SinkBasin CounterTop*2 Cabinet*2 Shelf*2 Toilet BathtubBasin TowelHolder",
    ),
    "bedroom": (
        "Bed Desk Drawer*3 Dresser SideTable GarbageCan Shelf",
        "Bed Desk Drawer*2 SideTable*2 Shelf*2 GarbageCan",
        "Bed Dresser Drawer*4 SideTable ArmChair Safe",
        "Bed Desk*2 Shelf*3 Drawer*2 GarbageCan",
        "Bed Desk Dresser SideTable Drawer*2 ArmChair GarbageCan Shelf",
    ),
    "livingroom": (
        "Sofa ArmChair CoffeeTable SideTable*2 TVStand Drawer*2 GarbageCan Shelf",
        "Sofa ArmChair*2 CoffeeTable DiningTable SideTable Dresser Drawer",
        "Sofa CoffeeTable*2 SideTable Shelf*2 TVStand Drawer*2 GarbageCan",
        "Sofa ArmChair CoffeeTable DiningTable Dresser Drawer*2 SideTable Safe",
    ),
}
_HELD_OUT = {
    "kitchen": (
        "Fridge Microwave SinkBasin CounterTop*3 Cabinet Drawer*3 DiningTable StoveBurner*2",
        "Fridge Microwave SinkBasin CounterTop Cabinet*3 Drawer Shelf GarbageCan CoffeeMachine",
    ),
    "bathroom": (
        "SinkBasin*2 CounterTop Cabinet*4 Toilet GarbageCan TowelHolder",
        "SinkBasin CounterTop Drawer*2 Shelf Cabinet Toilet BathtubBasin HandTowelHolder GarbageCan",
    ),
    "bedroom": (
        "Bed Desk Drawer*3 Shelf*2 Safe SideTable",
        "Bed*2 Dresser Desk SideTable*2 Drawer*2 ArmChair",
    ),
    "livingroom": (
        "Sofa*2 CoffeeTable SideTable TVStand Shelf Drawer*3 ArmChair",
        "Sofa ArmChair DiningTable SideTable*3 Dresser CoffeeTable GarbageCan",
    ),
}


def _counts(line: str) -> dict[str, int]:
    pairs = (word.partition("*") for word in line.split())
    return {name: int(number or 1) for name, _, number in pairs}


def _layouts(table: Mapping[str, tuple[str, ...]], held_out: bool) -> tuple[Layout, ...]:
    prefix = "new-" if held_out else ""
    return tuple(
        Layout(f"{prefix}{kind}-{i}", kind, _counts(line), held_out)
        for kind, lines in table.items()
        for i, line in enumerate(lines, 1)
    )


TRAIN_LAYOUTS = _layouts(_TRAIN, held_out=False)
HELD_OUT_LAYOUTS = _layouts(_HELD_OUT, held_out=True)
