"""Eight lines together against the package one by one, on a model large enough to be work."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_checkpoint import _model_config
from qwen3_speakers import use_one_core
from runner_lines import LIVELY

from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.qwen3.prompt import Qwen3Voice
from studio.backends.qwen3.talker import TalkerRunner
from studio.backends.qwen3.talker_slots import TalkerAdmission

pytestmark = pytest.mark.models

LEAST_GAIN = 2.5
SLOTS = 8
ROUNDS = 4
REFERENCE_FRAMES = 10

_TALKER = {
    **{"hidden_size": 512, "text_hidden_size": 512, "intermediate_size": 1536},
    **{"num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64},
    "rope_scaling": {"rope_type": "default", "mrope_section": [12, 10, 10], "interleaved": True},
}
_PREDICTOR = {
    **{"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 3},
    **{"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32},
}


@pytest.fixture(scope="module")
def model():
    from qwen_tts.core.models import Qwen3TTSConfig, Qwen3TTSForConditionalGeneration

    use_one_core()
    config = _model_config("voice_design", "1b7", full_size=False)
    config["talker_config"] |= _TALKER
    config["talker_config"]["code_predictor_config"] |= _PREDICTOR
    made = Qwen3TTSForConditionalGeneration(Qwen3TTSConfig(**config)).eval()
    with torch.no_grad():  # no line ends by itself
        made.talker.codec_head.weight[config["talker_config"]["codec_eos_token_id"]] = 0
    return made


def taken_s(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def test_eight_lines_together_make_at_least_two_and_a_half_times_the_frames(model):
    """Both are measured in turns and by their best round, so that other work hits neither alone."""
    line = torch.tensor([257, 100, 101, *range(60), 258, 10, 257, 100, 10])
    voice = Qwen3Voice(instruction=torch.arange(20))
    core = TalkerRunner(model, SlotLayout(SLOTS, positions=512, max_frames=300))
    prompt = core.prompt(line, voice, "english")
    core.admit([TalkerAdmission(slot, prompt, LIVELY, slot, 300) for slot in range(SLOTS)])

    def reference() -> None:
        [codes], _ = model.generate(
            input_ids=[line[None]],
            instruct_ids=[voice.instruction[None]],
            languages=["english"],
            non_streaming_mode=True,
            max_new_tokens=REFERENCE_FRAMES + 1,
        )
        assert len(codes) == REFERENCE_FRAMES

    core.step(SLOTS)
    with torch.inference_mode():
        reference()
        best = [
            (taken_s(reference), min(taken_s(lambda: core.step(SLOTS)) for _ in range(4)))
            for _ in range(ROUNDS)
        ]
    theirs = REFERENCE_FRAMES / min(one for one, _ in best)
    ours = SLOTS / min(together for _, together in best)
    print(f"frames a second: {ours:.0f} for {SLOTS} lines together, {theirs:.0f} one by one")
    assert ours >= LEAST_GAIN * theirs
