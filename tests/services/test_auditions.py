"""A line of a character by a voice that it could have, as it would sound in the scene."""

from __future__ import annotations

import pytest

from studio.audio.clip import Clip
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.project.history import Author
from studio.project.ops import OPS_ADAPTER
from studio.project.session import ProjectSession
from studio.services.previews import Sentence
from studio.services.studio import Studio

LINE = "Siobhan is here."
LONG = "Shivawn, the one and only, is here."


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    return studio.projects.create("Scene", read_dialog_text(f"Tom: {LINE}").dialog)


async def hear(studio: Studio, session: ProjectSession, text: str) -> Clip:
    return await studio.auditions.say(session, "Tom", "engine/draft/m8", Sentence(text))


def edit(session: ProjectSession, *ops: object) -> None:
    session.edit(OPS_ADAPTER.validate_python(ops), Author("ida-page"), session.rev)


async def test_words_are_pronounced_as_in_the_scene(
    studio: Studio, session: ProjectSession
) -> None:
    before = await hear(studio, session, LINE)
    spoken = LONG.removesuffix(" is here.")
    edit(session, {"op": "pronounce", "put": [{"written": "Siobhan", "spoken": spoken}]})
    heard, wanted = await hear(studio, session, LINE), await hear(studio, session, LONG)
    assert heard.samples.tolist() == wanted.samples.tolist() != before.samples.tolist()
    assert session.document.lines[session.document.order[0]].text == LINE


async def test_a_direction_is_not_said_and_the_characters_settings_are_heard(
    studio: Studio, session: ProjectSession
) -> None:
    plain = await hear(studio, session, LINE)
    directed = await hear(studio, session, f"(whispering) {LINE}")
    assert directed.samples.tolist() == plain.samples.tolist()
    edit(session, {"op": "character", "speaker": "tom", "fields": {"params": {"speed": 2.0}}})
    faster = await hear(studio, session, LINE)
    assert faster.duration_s < 0.7 * plain.duration_s
