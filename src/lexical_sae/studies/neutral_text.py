"""Text that is about nothing a class could be about: made from templates, the same every time.

Sentences state where things stand, when trains leave and how wide rooms are. No word of praise or
blame is among them; whether a model takes them for neutral is measured, not assumed.
"""

from __future__ import annotations

import random

TEMPLATES = (
    "The {thing} stands between the {other_thing} and the {place}.",
    "On {day} the temperature at noon was {number} degrees.",
    "The train to {town} leaves at {hour} from platform {number}.",
    "There are {number} {things} and {other_number} {other_things} in the {room}.",
    "The {room} is {number} metres long and {other_number} metres wide.",
    "The {thing} was moved from the {room} to the {other_room} in {month}.",
    "The road from {town} to {other_town} passes the {place} after {number} kilometres.",
    "A line was drawn from the {shape} to the {other_shape}.",
    "The wind came from the {direction} on {day} and from the {other_direction} on {other_day}.",
    "Page {number} of the list contains the {things}, page {other_number} the {other_things}.",
    "The sheet is divided into {number} columns and {other_number} rows.",
    "Each {shape} on the plan stands for one {thing}.",
    "The {place} is open from {hour} on {day}.",
    "In {month} the level of the river at {town} was measured {number} times.",
    "The {thing} is made of {material}, the {other_thing} of {other_material}.",
    "The office in {town} has {number} desks and {other_number} windows.",
)

LISTS = {
    "thing": ("table", "chair", "shelf", "cupboard", "lamp", "bench", "desk", "box", "ladder"),
    "things": ("tables", "chairs", "shelves", "lamps", "benches", "boxes", "doors", "bottles"),
    "place": ("station", "harbour", "bridge", "library", "post office", "town hall", "market"),
    "room": ("kitchen", "hall", "corridor", "office", "cellar", "workshop", "entrance"),
    "shape": ("triangle", "circle", "square", "rectangle", "hexagon", "ellipse", "cylinder"),
    "direction": ("north", "south", "east", "west", "northeast", "southwest"),
    "material": ("wood", "steel", "glass", "stone", "paper", "clay", "copper"),
    "town": ("Norton", "Weston", "Marsden", "Halford", "Eastwick", "Brenton", "Langley"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": ("January", "March", "April", "June", "August", "October", "November"),
    "number": ("two", "three", "four", "five", "six", "seven", "eight", "nine", "twelve", "twenty"),
    "hour": ("seven", "eight", "nine", "half past nine", "noon", "three", "a quarter past five"),
}


def neutral_sentence(draw: random.Random) -> str:
    values = {}
    for name, choices in LISTS.items():
        values[name], values[f"other_{name}"] = draw.sample(choices, 2)
    return draw.choice(TEMPLATES).format(**values)


def neutral_sentences(words: int, draw: random.Random) -> list[str]:
    """Sentences of at least `words` words together; none for 0."""
    found: list[str] = []
    count = 0
    while count < words:
        found.append(neutral_sentence(draw))
        count += len(found[-1].split())
    return found
