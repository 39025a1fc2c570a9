"""Whom a name suggests, and that automatic voices suit it on every engine that names choose on."""

from __future__ import annotations

import pytest

from studio.backends.registry import create, describe_engines
from studio.dialog.given_names import usual_age, usual_gender
from studio.voices.automatic import VoiceTraits, choose_voice_names

WOMEN = (
    "Ann", "Maria", "Jessica", "Sarah", "Emily", "Laura", "Kate", "Susan", "Margaret", "Helen",
    "Ruth", "Alice", "Nina", "Sophie", "Grace", "Hannah", "Olivia", "Emma", "Lucy", "Dorothy",
)  # fmt: skip
MEN = (
    "Bob", "Frank", "Carl", "Tom", "James", "John", "Peter", "David", "Paul", "Mark", "Henry",
    "George", "Oliver", "Jack", "Daniel", "Michael", "Owen", "Simon", "Walter", "Luke",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "language", "gender"),
    [
        ("MARIA", None, "woman"),
        ("Jürgen", None, "man"),
        ("Małgorzata", "pl", "woman"),
        ("Ольга", None, "woman"),
        ("Andrea", "it-IT", "man"),
        ("Andrea", "en", "woman"),
        ("Simone", "fr", "woman"),
        ("Mr. Ashby", None, "man"),
        ("Mrs. Thomas", None, "woman"),
        ("OLD WOMAN 2", None, "woman"),
        ("Grandma", None, "woman"),
        ("Sister Michael", None, "woman"),
        ("Dr. Anna Weber", None, "woman"),
        ("Captain Tom", None, "man"),
        ("Boy", None, "child"),
        ("Narrator", None, ""),
        ("Captain", None, ""),
        ("Speaker 1", None, ""),
        ("Taylor", None, ""),
        ("", None, ""),
        ("123 !?", None, ""),
    ],
)
def test_whom_a_name_suggests(name: str, language: str | None, gender: str) -> None:
    assert usual_gender(name, language) == gender


@pytest.mark.parametrize("engine", ["kokoro", "supertonic", "kitten", "draft"])
def test_common_names_have_a_voice_of_their_gender(engine: str) -> None:
    engines = describe_engines(create(engine))
    for gender, names in (("woman", WOMEN), ("man", MEN)):
        for name in names:
            chosen = choose_voice_names([name], {}, engines).get(name, name)
            heard = [describe(chosen).gender for describe in engines]
            assert set(heard) <= {gender, ""}, (name, chosen, heard)


def test_kokoro_gives_odd_voices_to_nobody_and_low_women_last() -> None:
    engines = describe_engines(create("kokoro"), "en-US")
    chosen = choose_voice_names(WOMEN[:4] + MEN[:8], {}, engines)
    labels = [engines[0](chosen.get(name, name)).label for name in WOMEN[:4] + MEN[:8]]
    assert set(labels[:4]) == {f"{one} (woman)" for one in ("Aoede", "Bella", "Heart", "Sarah")}
    assert len(set(labels)) == 12
    assert not set(labels) & {"Santa (man)", "Nicole (woman)"}


def test_the_gender_goes_before_being_unlike_the_others() -> None:
    def describe(name: str) -> VoiceTraits:
        return VoiceTraits("her", gender="woman") if name.endswith("2") else VoiceTraits("him")

    def told(name: str) -> VoiceTraits:
        traits = describe(name)
        return traits if traits.gender else VoiceTraits(name, gender="man")

    assert choose_voice_names(["Eve", "Ann"], {}, [told]) == {"Eve": "Eve 2", "Ann": "Ann 2"}


def test_of_a_huge_cast_the_last_have_the_voices_of_their_own_names() -> None:
    names = [f"Ann {number}" for number in range(2_000)]
    asked: list[str] = []

    def describe(name: str) -> VoiceTraits:
        asked.append(name)
        return VoiceTraits(name, gender="man")

    chosen = choose_voice_names(names, {}, [describe])
    assert not set(names[500:]) & set(chosen)
    assert len(asked) <= 24 * 24 * 200 + 476 * 201


@pytest.mark.parametrize(
    ("name", "age"),
    [
        ("Tom (8)", "child"),
        ("CHILD, 8", "child"),
        ("TAM (CHILD, 8)", "child"),
        ("Girl 2", "child"),
        ("GRANDMA, 70s", "old"),
        ("Henry (81)", "old"),
        ("Grandpa", "old"),
        ("Old Tom", "old"),
        ("Guard (2)", ""),
        ("Anna, 35", ""),
        ("Apollo 13", ""),
        ("Tom", ""),
    ],
)
def test_how_old_a_name_says_that_it_is(name: str, age: str) -> None:
    assert usual_age(name) == age
    if age == "child":
        assert usual_gender(name) == "child"


@pytest.mark.parametrize("engine", ["kokoro", "draft"])
def test_children_are_high_and_old_people_low(engine: str) -> None:
    engines = describe_engines(create(engine), "en")

    def pitch_of(name: str) -> float:
        chosen = choose_voice_names([name], {}, engines, "en").get(name, name)
        return engines[0](chosen).pitch_hz or 0.0

    women, men = map(pitch_of, ("Ruth",)), map(pitch_of, ("Carl",))
    for name in ("Carl (8)", "RUTH, 7", "Boy"):
        assert pitch_of(name) >= max(180, pitch_of("Ruth")), name
    for name in ("Carl (80)", "GRANDPA, 70s", "Old man"):
        assert pitch_of(name) <= min(107, pitch_of("Carl")), name
    assert pitch_of("RUTH, 70s") <= 172
    assert 0 < max(men) < 150 < max(women)


def test_what_the_script_says_of_a_character_casts_its_voice() -> None:
    engines = describe_engines(create("kokoro"), "en")
    chosen = choose_voice_names(["CARL"], {}, engines, "en", {"carl": "CHILD, 8"}).get(
        "CARL", "CARL"
    )
    assert engines[0](chosen).pitch_hz >= 180
