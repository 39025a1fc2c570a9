"""How many lines fit: chosen from free memory, or as set."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from codec_memory import Living, full_size_step
from hypothesis import given
from hypothesis import strategies as st
from qwen3_checkpoint import small_checkpoint

from studio.backends.batching.batched_backend import describe_plan
from studio.backends.batching.memory_plan import (
    MAX_SLOTS,
    SLOT_COUNTS,
    ExtraMemory,
    measure_free_bytes,
    plan_memory,
)
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
    read_dims,
)
from studio.backends.qwen3.talker import TalkerRunner
from studio.errors import ModelUnavailable

pytestmark = pytest.mark.models

GB = 10**9
ANY = BatchOptions()


@pytest.mark.parametrize(
    ("free_gb", "slots", "positions"),
    [(130, 64, 2048), (16, 32, 2048), (8, 16, 2048), (4.5, 8, 1024), (3.5, 4, 1024)],
)
def test_slots_of_the_usual_model_on_cards_of_some_sizes(free_gb, slots, positions):
    room = plan_memory(RELEASED_DIMS, round(free_gb * GB), "cuda", ANY)
    assert (room.layout.slots, room.layout.positions) == (slots, positions)


@pytest.mark.parametrize(("voices", "slots"), [(0, 16), (4, 16), (16, 8)])
def test_what_is_kept_of_voices_leaves_fewer_slots(voices, slots):
    kept = voices * RELEASED_DIMS.beginning_bytes(300, "cuda")
    room = plan_memory(RELEASED_DIMS, 8 * GB, "cuda", ANY, beside=ExtraMemory(kept))
    assert (room.layout.slots, room.kept_bytes) == (slots, kept)
    assert kept == voices * 300 * 114_688
    assert room.total_bytes == room.slots_bytes + room.sound_bytes + kept


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
    assert 0.8 * codec_bytes(most) < living + held < codec_bytes(most)


def test_the_codec_makes_room_for_what_was_chosen():
    from qwen3_speakers import loaded_package

    decoder = loaded_package().model.speech_tokenizer.model.decoder
    room = plan_memory(RELEASED_DIMS, 3 * GB, "cpu", ANY)
    codec = BatchedCodec(decoder, convolved_at_once=room.codec_frames)
    assert codec.frames_at_once == room.codec_frames
    assert room.sound_bytes == codec_bytes(room.codec_frames)


def test_doctor_tells_all_that_is_reckoned():
    room = plan_memory(RELEASED_DIMS, 130 * GB, "cuda", ANY, beside=ExtraMemory(GB))
    assert describe_plan(room, "cuda") == (
        "64 lines at once on cuda, of 2,048 positions each; beside the weights 15.3 GB for the "
        "lines, 2.6 GB for their sound, 1.0 GB for what is kept of the voices"
    )


def test_what_is_set_is_kept():
    room = plan_memory(RELEASED_DIMS, 100 * GB, "cuda", BatchOptions(slots=12, positions=700))
    assert (room.layout.slots, room.layout.positions, room.layout.max_frames) == (12, 704, 704)


def test_what_is_set_and_does_not_fit_is_told_with_the_remedy():
    with pytest.raises(ModelUnavailable, match="TTS_BATCH_SIZE"):
        plan_memory(RELEASED_DIMS, 8 * GB, "cuda", BatchOptions(slots=64))


def test_next_smaller_choices():
    room, slots = plan_memory(RELEASED_DIMS, 8 * GB, "cuda", ANY), []
    each = room.slots_bytes // room.layout.slots
    while (room := room.smaller()) is not None:
        slots.append(room.layout.slots)
        assert room.slots_bytes == each * room.layout.slots
    assert slots == [8, 4, 2, 1]


@given(free_mb=st.integers(0, 200_000), device=st.sampled_from(["cuda", "mps", "cpu"]))
def test_whatever_is_chosen_fits(free_mb, device):
    try:
        room = plan_memory(RELEASED_DIMS, free_mb * 10**6, device, ANY)
    except ModelUnavailable:
        assert free_mb < 4_000
        return
    assert room.total_bytes <= free_mb * 10**6 * 0.9
    assert room.layout.slots in SLOT_COUNTS
    assert room.layout.slots <= MAX_SLOTS[device]


def test_the_reckoned_size_is_the_cores():
    from qwen3_speakers import loaded_package

    folder, layout = small_checkpoint("base"), SlotLayout(3, 256, 200)
    core = TalkerRunner(loaded_package().model, layout)
    reckoned = 3 * read_dims(folder).slot_bytes(layout, "cpu")
    assert core.state_bytes() == pytest.approx(reckoned, rel=0.01)


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
