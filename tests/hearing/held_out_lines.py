"""Lines of dialog that the tests' recogniser wasn't trained on, of words that it mostly knows."""

from __future__ import annotations

import random

SPEAKERS = ("Ida", "Tom", "Maud", "Captain Rhys", "Pip", "Aunt Vera")

_SENTENCES = (
    "{who} {said} that the {thing} was {how}, and {who2} believed it.",
    "I have {done} the {thing} twice since {day}, but nobody {asked} me why.",
    "Where did you {do} the {thing}? It was on the {place} this morning.",
    "If we leave before {time}, we may still reach the {building} without a {tool}.",
    "She {asked} for a {how} {thing} and got {number} of them instead.",
    "Don't {do} that {thing}, {who3}; it belongs to the {person}.",
    "The {person} from the {building} comes here every {day} to {do} his {thing}.",
    "There were {number} {animal}s behind the {building}, all of them {how}.",
    "No, I won't {do} it, because the {person} would never forgive me.",
    "He looked at the {thing}, then at the {person}, and {said} nothing.",
    "You must be very {how} by now. Sit down, and I will {do} the {thing}.",
    "It is {how} outside; the {place} was full of {animal}s last {day}.",
    "My {person} {said} the {building} burned for {number} days.",
    "What would a {person} want with a {how} {thing} like this one?",
    "We can't {do} the {thing} until the {tool} comes back from the {place}.",
    "They found the {tool} under the {place}, next to an old {thing}.",
    "Listen! Somebody is trying to {do} the {building} door with a {tool}.",
    "Perhaps the {person} was right about the {animal} after all.",
)
_WORDS = {
    "who": ["The doctor", "My brother", "The old captain", "Her sister", "The teacher"],
    "who2": ["everybody", "nobody", "the whole village", "even the judge"],
    "who3": ["my friend", "madam", "sir", "child"],
    "said": ["said", "whispered", "shouted", "answered", "remembered"],
    "asked": ["asked", "told", "called", "followed", "thanked"],
    "thing": ["lantern", "letter", "kettle", "mirror", "carpet", "basket", "blanket", "picture",
              "clock", "newspaper", "suitcase", "bottle", "coat", "map", "violin", "teapot"],
    "how": ["quiet", "broken", "heavy", "beautiful", "hungry", "strange", "dangerous", "cold",
            "empty", "golden", "narrow", "crooked", "gloomy", "tremendous"],
    "done": ["carried", "mended", "opened", "painted", "found", "cleaned", "counted"],
    "do": ["carry", "mend", "open", "paint", "find", "clean", "count", "sell", "bury"],
    "day": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "week"],
    "time": ["midnight", "noon", "seven", "supper", "the first train", "sunrise"],
    "place": ["table", "bridge", "shore", "stairs", "river", "meadow", "harbour", "balcony"],
    "building": ["lighthouse", "station", "church", "hospital", "castle", "bakery", "library"],
    "tool": ["ladder", "hammer", "shovel", "rope", "key", "boat", "bucket", "wheelbarrow"],
    "number": ["three", "eleven", "forty", "seventeen", "a hundred", "twelve"],
    "person": ["sailor", "widow", "farmer", "stranger", "lawyer", "servant", "pirate", "uncle"],
    "animal": ["chicken", "wolf", "spider", "pigeon", "horse", "dragon", "raven"],
}  # fmt: skip


def draw_line(chance: random.Random) -> str:
    """One or two sentences."""
    count = 1 if chance.random() < 0.7 else 2
    return " ".join(_draw_sentence(chance) for _ in range(count))


def _draw_sentence(chance: random.Random) -> str:
    chosen = {slot: chance.choice(words) for slot, words in _WORDS.items()}
    return chance.choice(_SENTENCES).format(**chosen)
