"""What a request asks of Qwen3-TTS, without the model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.backends.base import Conditioning, SpeechRequest
from studio.backends.qwen3.checkpoint import (
    FRAMES_PER_S,
    MAX_CHARS,
    MAX_FRAMES,
    PARAMS,
    SamplingParams,
    estimate_frame_bound,
    read_sampling,
    strip_speakable,
)
from studio.errors import SpeechFailed


def asking(**params: float) -> SpeechRequest:
    return SpeechRequest("Hello.", Conditioning(None, 0), params=params)


def test_what_a_request_leaves_out_takes_the_default():
    assert read_sampling(asking()) == SamplingParams()
    assert read_sampling(asking(temperature=0.5, top_k=20.0)) == SamplingParams(
        temperature=0.5, top_k=20
    )


def test_temperature_0_leaves_nothing_to_chance():
    assert read_sampling(asking(temperature=0)).greedy
    assert not read_sampling(asking(temperature=PARAMS[0].step)).greedy


@pytest.mark.parametrize("text", ["", "   ", "…", "— ? !", "🎭", "[]"])
def test_text_without_a_word_never_reaches_the_model(text):
    with pytest.raises(SpeechFailed, match="nothing to speak"):
        strip_speakable(text)


@pytest.mark.parametrize("text", ["Yes.", "7", "好", "نعم"])
def test_one_word_is_enough(text):
    assert strip_speakable(f"  {text}\n") == text


@pytest.mark.parametrize(
    ("text", "slow_s"),
    [
        ("Yes.", 1.5),
        ("She sells sea shells by the sea shore, and the shells she sells are hers.", 9.0),
        ("今天晚上我们一起去看电影，然后再去吃火锅。", 10.0),
        ("1,984,000", 6.0),
        ("오늘 저녁에 같이 영화를 보러 가요.", 8.0),
    ],
)
def test_slow_speech_stays_within_the_bound(text, slow_s):
    assert slow_s < estimate_frame_bound(text) / FRAMES_PER_S < 5 * slow_s


@given(st.text(max_size=2 * MAX_CHARS), st.text(max_size=40))
def test_the_bound_grows_with_the_text_and_has_a_limit(text, more):
    assert (
        2 * FRAMES_PER_S
        <= estimate_frame_bound(text)
        <= estimate_frame_bound(text + more)
        <= MAX_FRAMES
    )


def test_the_longest_segment_in_a_western_script_is_under_the_limit_of_all():
    assert estimate_frame_bound("word " * (MAX_CHARS // 5)) >= MAX_CHARS / 10 * FRAMES_PER_S
