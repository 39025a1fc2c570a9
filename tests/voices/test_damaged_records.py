"""A flipped bit in `speaker.json` takes no voice away, none of its samples, and is never silent.

`-m campaign` flips every bit.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from voice_like import voice_like

from studio.voices.library import SpeakerLibrary

FLIPS = 240


@pytest.fixture
def library(tmp_path: Path) -> SpeakerLibrary:
    library = SpeakerLibrary(tmp_path / "speakers")
    speech = voice_like(3.0)
    library.add("Ida", sample=speech, transcript="What is said.", language="en", tags=["warm"])
    library.add_mood("Ida", "glad", speech, transcript="What is said gladly.")
    library.replace_sample("Ida", None, speech, transcript="What is said now.")
    return library


def check_flips(library: SpeakerLibrary, places: Iterable[int]) -> None:
    (before,) = library.list()
    path = library.folder(before.speaker_id) / "speaker.json"
    whole = path.read_bytes()
    kept = {one.name: one.read_bytes() for one in path.parent.glob("*.wav")}
    lost, silent, changed = [], [], set()
    for place in places:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        found, problems = SpeakerLibrary(path.parents[1]).scan()
        if len(found) != 1:
            lost.append((place, problems))
            continue
        (now,) = found
        changed |= {name for name in now.__slots__ if getattr(now, name) != getattr(before, name)}
        if not any("speaker.json" in one and now.speaker_id in one for one in problems):
            silent.append(place)
    path.write_bytes(whole)
    assert lost == []
    assert silent == []
    assert changed <= {"transcript", "language", "colour", "tags"}, "texts of people alone"
    assert {one.name: one.read_bytes() for one in path.parent.glob("*.wav")} == kept


def n_bits(library: SpeakerLibrary) -> int:
    (one,) = library.list()
    return 8 * (library.folder(one.speaker_id) / "speaker.json").stat().st_size


def test_no_voice_is_lost(library: SpeakerLibrary) -> None:
    check_flips(library, random.Random(39).sample(range(n_bits(library)), FLIPS))


@pytest.mark.campaign
def test_no_voice_is_lost_by_any_bit(library: SpeakerLibrary) -> None:
    check_flips(library, range(n_bits(library)))


@pytest.mark.parametrize(
    ("before", "after"),
    [(b'"moods"', b'"mnods"'), (b'"has_sample"', b'"has_samqle"'), (b'"formers"', b'"formerr"')],
)
def test_an_edit_after_a_flip_keeps_every_recording(
    library: SpeakerLibrary, before: bytes, after: bytes
) -> None:
    (voice,) = library.list()
    folder = library.folder(voice.speaker_id)
    names = {path.name for path in folder.iterdir()}
    data = (folder / "speaker.json").read_bytes()
    assert data.count(before) == 1
    (folder / "speaker.json").write_bytes(data.replace(before, after))
    library.update("Ida", description="Low.")
    assert {path.name for path in folder.iterdir()} == names
    assert library.scan()[1] == ()
    assert len(library.get("Ida").moods) == 1


def test_one_letter_that_a_person_changed_is_taken(library: SpeakerLibrary) -> None:
    (voice,) = library.list()
    path = library.folder(voice.speaker_id) / "speaker.json"
    path.write_bytes(path.read_bytes().replace(b"said now.", b"saie now."))  # a bit from the other
    assert library.get("Ida").transcript == "What is saie now."


def test_a_name_that_flips_to_that_of_another_voice_leaves_none_out(
    library: SpeakerLibrary,
) -> None:
    library.add("Ide")
    path = library.folder(library.get("Ida").speaker_id) / "speaker.json"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"name": "Ida"', b'"name": "Ide"'))
    assert [one.name for one in library.list()] == ["Ida", "Ide"]
    row = data.index(b' "version"')
    path.write_bytes(b"{\n" + data[row:].replace(b'"name": "Ida"', b'"name": "Ada"'))
    assert [one.name for one in library.list()] == ["Ada", "Ide"], "without a checksum as it is"


@pytest.mark.parametrize("content", [b"", b"{", b'{\n "name": 7\n}', bytes(900), b"\xff" * 900])
def test_more_damage_is_said_in_words_that_a_person_understands(
    library: SpeakerLibrary, content: bytes
) -> None:
    (voice,) = library.list()
    path = library.folder(voice.speaker_id) / "speaker.json"
    path.write_bytes(content)
    (rebuilt,), (problem,) = library.scan()
    assert (rebuilt.speaker_id, rebuilt.sample) == (voice.speaker_id, voice.sample)
    assert rebuilt.name == f"Damaged voice {voice.speaker_id}"
    assert library.list_unreadable() == (problem,)
    assert voice.speaker_id in problem
    assert "is damaged. The voice is rebuilt from what is left: check its name" in problem
    assert not re.search(r"column|char|Expecting|Field|input|Mend", problem)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"moods": [', b'"moods": {{'),
        (b'"version": 1', b'"ve\xff\xff\xff\xff\xff": 1'),
        (b'"glad"', b"\0\0\0\0\0\0"),
    ],
)
def test_a_record_with_more_damage_is_rebuilt_and_an_edit_keeps_every_recording(
    library: SpeakerLibrary, before: bytes, after: bytes
) -> None:
    (voice,) = library.list()
    folder = library.folder(voice.speaker_id)
    recordings = {path.name: path.read_bytes() for path in folder.glob("*.wav")}
    assert len(recordings) == 3
    whole = (folder / "speaker.json").read_bytes()
    damaged = whole.replace(before, after)
    assert damaged != whole
    (folder / "speaker.json").write_bytes(damaged)
    rebuilt = library.get("Ida")
    assert rebuilt.sample == voice.sample
    assert (rebuilt.transcript, rebuilt.language) == ("What is said now.", "en")
    assert (rebuilt.colour, rebuilt.consent_at, rebuilt.moods) == (voice.colour, None, ())
    library.rename("Ida", "Anna")
    library.update("Anna", description="Low.")
    library.add_mood("Anna", "sad", voice_like(3.0))
    assert library.scan()[1] == ()
    assert library.get("Anna").description == "Low."
    kept = {path.name: path.read_bytes() for path in folder.glob("*.wav")}
    assert kept.items() >= recordings.items()
    assert [path.read_bytes() for path in folder.glob("speaker.damaged-*.json")] == [damaged]


def test_a_name_of_which_a_letter_is_lost_isnt_taken(library: SpeakerLibrary) -> None:
    (voice,) = library.list()
    path = library.folder(voice.speaker_id) / "speaker.json"
    path.write_bytes(path.read_bytes().replace(b'"Ida"', b'"I\xff\xff"'))
    assert [one.name for one in library.list()] == [f"Damaged voice {voice.speaker_id}"]


def test_a_rebuilt_voice_is_removed_and_restored_with_what_its_record_was(
    library: SpeakerLibrary,
) -> None:
    (voice,) = library.list()
    folder = library.folder(voice.speaker_id)
    (folder / "speaker.json").write_bytes(b"{")
    library.remove(f"Damaged voice {voice.speaker_id}")
    restored = library.restore_removed(voice.speaker_id)
    assert restored.sample == voice.sample
    assert [path.read_bytes() for path in folder.glob("speaker.damaged-*.json")] == [b"{"]


def test_a_voice_of_a_newer_studio_says_so(library: SpeakerLibrary) -> None:
    (voice,) = library.list()
    path = library.folder(voice.speaker_id) / "speaker.json"
    path.write_text(json.dumps({"version": 7, "name": "Ida"}), "utf-8")
    (problem,) = library.list_problems()
    assert "made by a newer studio" in problem
