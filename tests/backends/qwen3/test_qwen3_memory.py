"""The memory that Qwen3-TTS takes is reckoned as it is."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from codec_memory import Living, full_size_step
from qwen3_checkpoint import small_checkpoint

from studio.backends.batching.memory_plan import measure_free_bytes
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.options import BatchOptions
from studio.backends.qwen3.batched_codec import BatchedCodec
from studio.backends.qwen3.qwen3_memory import (
    CODEC_FRAMES,
    CODEC_ROW_FRAMES,
    MAX_CACHED_SAMPLES,
    MAX_STREAMED_LINES,
    RELEASED_DIMS,
    STREAM_CHUNK_FRAMES,
    TalkerDims,
    codec_bytes,
    count_weights_bytes,
    plan_talker_memory,
    read_dims,
)
from studio.backends.qwen3.talker import TalkerRunner

pytestmark = pytest.mark.models

GB = 10**9


def test_the_codec_takes_what_was_reckoned():
    """At full size, counted on a device that has shapes only."""
    step = full_size_step("meta")
    most = CODEC_FRAMES["cuda"][1]
    rows = most // CODEC_ROW_FRAMES
    with torch.inference_mode():
        living = Living.most_bytes(step, rows=rows, frames=CODEC_ROW_FRAMES)
        heard = Living.most_bytes(step, rows=MAX_STREAMED_LINES, frames=max(STREAM_CHUNK_FRAMES))
    state = 4 * step.numbers
    tables = 4 * sum(book.numel() for book in step.tables)
    held = (rows + MAX_STREAMED_LINES + MAX_CACHED_SAMPLES) * state + tables + heard
    print(f"{living / most / 1e6:.2f} MB a frame, {state / 1e6:.2f} MB a state")
    assert 0.8 * codec_bytes(most, "cuda") < living + held < codec_bytes(most, "cuda")


def test_the_codec_makes_room_for_what_was_chosen():
    from qwen3_speakers import loaded_package

    decoder = loaded_package().model.speech_tokenizer.model.decoder
    room = plan_talker_memory(RELEASED_DIMS, 3 * GB, "cpu", BatchOptions())
    codec = BatchedCodec(decoder, convolved_at_once=room.codec_frames)
    assert codec.frames_at_once == room.codec_frames
    assert room.sound_bytes == codec_bytes(room.codec_frames, "cpu")


def test_the_reckoned_size_is_the_cores():
    from qwen3_speakers import loaded_package

    folder, layout = small_checkpoint("base"), SlotLayout(3, 256, 200)
    core = TalkerRunner(loaded_package().model, layout)
    reckoned = 3 * read_dims(folder).slot_bytes(layout, "cpu")
    assert core._slots.size_bytes == pytest.approx(reckoned, rel=0.01)


def test_the_usual_model_is_the_smaller_one_on_the_hub():
    attention = {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128}
    config = {
        "talker_config": attention
        | {"num_hidden_layers": 28, "hidden_size": 1024, "vocab_size": 3072, "num_code_groups": 16}
        | {"code_predictor_config": attention | {"num_hidden_layers": 5}}
    }
    assert TalkerDims.of(json.loads(json.dumps(config))) == RELEASED_DIMS


def test_memory_of_this_machine():
    assert measure_free_bytes("cpu") > 0
    assert count_weights_bytes(small_checkpoint("base"), "cpu") > 1_000_000
    assert count_weights_bytes(None, "cpu") == 2 * count_weights_bytes(None, "cuda")
