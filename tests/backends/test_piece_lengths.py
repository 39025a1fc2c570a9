"""Long lines in dense scripts are cut to what the models can say in one pass."""

from __future__ import annotations

import pytest

from studio.backends.chatterbox.variants import ENGLISH, MULTILINGUAL
from studio.backends.qwen3.checkpoint import Checkpoint
from studio.dialog.model import Dialog, Speech
from studio.dialog.planning import plan

CHINESE = "他说，今天的天气很好。我们去公园吧！好不好？当然，走吧。" * 20
JAPANESE = "今日はとても天気がいいですね。公園へ行きましょうか。はい、そうしましょう。" * 20
KOREAN = "오늘은 날씨가 아주 좋네요. 우리 공원에 갈까요? 네, 그렇게 해요. " * 20
ENGLISH_TEXT = "He said that the weather was fine. Shall we go to the park? Of course. " * 20


def pieces(text, can):
    segments = plan(Dialog((Speech("Ida", text),)), can.limits()).segments
    return [segment.text for segment in segments]


@pytest.mark.parametrize("text", [CHINESE, JAPANESE, KOREAN], ids=["zh", "ja", "ko"])
@pytest.mark.parametrize(
    ("can", "most_wide"),
    [(MULTILINGUAL.capabilities, 80), (Checkpoint().capabilities, 150)],
    ids=["multilingual", "qwen3"],
)
def test_wide_characters_count_for_as_long_as_they_take(can, most_wide, text):
    made = pieces(text, can)
    wide = [sum(ord(char) > 0x1100 for char in piece) for piece in made]
    assert most_wide / 2 < max(wide) <= most_wide
    assert "".join(made).replace(" ", "") == text.replace(" ", "")
    assert all(piece[-1] in "。！？.?" for piece in made)


@pytest.mark.parametrize("can", [ENGLISH.capabilities, MULTILINGUAL.capabilities])
def test_narrow_characters_count_once(can):
    made = pieces(ENGLISH_TEXT, can)
    assert 0.6 * can.max_chars < max(map(len, made)) <= can.max_chars
