"""What a checkpoint's folder tells before anything is loaded."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import numpy as np
from qwen3_checkpoint import FEW_GROUPS, small_checkpoint
from qwen3_speakers import collected, request_for, speaker, use_one_core, whole

from studio.audio.clip import Samples
from studio.backends.base import Conditioning, SpeechRequest
from studio.backends.options import BackendOptions
from studio.backends.qwen3.backend import Qwen3Backend
from studio.backends.qwen3.checkpoint import SamplingParams, compute_fingerprint, read_checkpoint
from studio.errors import ModelUnavailable, SpeechFailed
from studio.voices.speaker import Voice

pytestmark = pytest.mark.models


def test_a_base_model_clones():
    can = read_checkpoint(small_checkpoint("base")).capabilities
    assert (can.cloning, can.presets, can.described_voices, can.builtin_voice) == (
        *(True, ()),
        *(False, False),
    )
    assert can.languages == {"zh": "Chinese", "en": "English", "de": "German"}
    assert can.streaming


def test_a_custom_voice_model_has_presets():
    can = read_checkpoint(small_checkpoint("custom_voice")).capabilities
    assert [preset.preset_id for preset in can.presets] == ["vivian", "eric", "ryan"]
    assert (can.cloning, can.described_voices, can.builtin_voice) == (False, False, True)


def test_a_voice_design_model_takes_descriptions():
    can = read_checkpoint(small_checkpoint("voice_design")).capabilities
    assert (can.cloning, can.described_voices, can.builtin_voice) == (False, True, False)


@pytest.mark.parametrize(
    ("kind", "size", "takes"),
    [("custom_voice", "1b7", True), ("custom_voice", "0b6", False), ("base", "1b7", False)],
)
def test_instructions_are_for_the_checkpoints_trained_on_them(kind, size, takes):
    checkpoint = read_checkpoint(small_checkpoint(kind, size))
    assert checkpoint.takes_instruction is checkpoint.capabilities.instructions is takes


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"tts_model_type": "base"}', None])
def test_a_folder_with_another_model_is_named(tmp_path: Path, content: str | None):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ModelUnavailable, match="no Qwen3-TTS model"):
        read_checkpoint(tmp_path)


def test_the_fingerprint_follows_the_weights_and_not_the_place(tmp_path: Path):
    original = small_checkpoint("base")
    copy = Path(shutil.copytree(original, tmp_path / "copy"))
    assert compute_fingerprint(copy) == compute_fingerprint(original)
    weights = copy / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    assert compute_fingerprint(copy) != compute_fingerprint(original)


def test_what_a_checkpoint_can_do_is_known_before_it_is_loaded():
    source = str(small_checkpoint("custom_voice"))
    backend = Qwen3Backend(BackendOptions(qwen3_model=source, device="cpu"))
    assert backend.capabilities.presets
    assert backend.to_fetch() is None
    assert compute_fingerprint(Path(source)) in backend.revision


def test_without_weights_it_counts_as_a_base_model_that_has_to_be_fetched(tmp_path: Path):
    backend = Qwen3Backend(BackendOptions(qwen3_model=str(tmp_path / "none"), device="cpu"))
    assert backend.capabilities.cloning
    assert backend.to_fetch()
    assert "not here" in backend.revision


def test_the_revision_tells_apart_what_changes_a_voice():
    source = str(small_checkpoint("base"))
    revisions = {
        Qwen3Backend(BackendOptions(qwen3_model=source, reference_silence_s=s)).revision
        for s in (0.0, 0.5)
    }
    assert len(revisions) == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"\x10\0\0\0\0\0\0\0not safetensors!"),
        ("model.safetensors", b""),
        ("config.json", b"{"),
        ("speech_tokenizer/config.json", b"{}"),
        ("vocab.json", b"[1, 2"),
        ("generation_config.json", b"nothing"),
    ],
)
def test_a_broken_file_is_one_message_and_the_next_try_works(
    tmp_path: Path, name: str, content: bytes
):
    folder = Path(shutil.copytree(small_checkpoint("base", groups=FEW_GROUPS), tmp_path / "model"))
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(content)
    backend = Qwen3Backend(BackendOptions(qwen3_model=str(folder), device="cpu"))
    with pytest.raises(ModelUnavailable) as failure:
        backend.load(lambda _progress: None)
    assert str(folder) in failure.value.full_message
    (folder / name).write_bytes(whole)
    backend.load(lambda _progress: None)
    backend.unload()


def test_a_checkpoint_whose_tokenizer_is_one_file_speaks_the_same(tmp_path: Path):
    """As the transformers package writes it today: `tokenizer.json`, without `vocab.json`."""
    from transformers import AutoTokenizer

    original = small_checkpoint("base", groups=FEW_GROUPS)
    folder = Path(shutil.copytree(original, tmp_path / "model"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        (folder / name).unlink()
    tokenizer.save_pretrained(folder)
    assert (folder / "tokenizer.json").is_file()
    assert not (folder / "vocab.json").exists()
    use_one_core()
    spoken = []
    for source in (original, folder):
        backend = Qwen3Backend(BackendOptions(qwen3_model=str(source), device="cpu"))
        assert backend.to_fetch() is None
        backend.load(lambda _progress: None)
        line = request_for(backend, speaker("Ada"), "One file, Grüße and 你好.")
        spoken.append(whole(collected(backend.speak(line))))
        backend.unload()
    assert np.array_equal(*spoken)


def test_weights_of_other_dimensions_are_refused(tmp_path: Path):
    folder = Path(shutil.copytree(small_checkpoint("base", groups=FEW_GROUPS), tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    config["talker_config"]["intermediate_size"] = 96
    (folder / "config.json").write_text(json.dumps(config))
    backend = Qwen3Backend(BackendOptions(qwen3_model=str(folder), device="cpu"))
    with pytest.raises(ModelUnavailable, match="can't be loaded"):
        backend.load(lambda _progress: None)


def chosen_by_its_author(tmp_path: Path, kind: str = "base", **chosen: object) -> Path:
    folder = Path(shutil.copytree(small_checkpoint(kind, groups=FEW_GROUPS), tmp_path / "model"))
    (folder / "generation_config.json").write_text(json.dumps(chosen))
    return folder


def test_a_fine_tune_is_spoken_with_its_own_defaults(tmp_path: Path):
    folder = chosen_by_its_author(
        tmp_path, temperature=0.4, top_k=0, repetition_penalty=9, subtalker_temperature=0.2
    )
    checkpoint = read_checkpoint(folder)
    assert checkpoint.sampling == SamplingParams(0.4, top_k=200, repetition_penalty=9.0)
    assert checkpoint.rest == SamplingParams(temperature=0.2)
    told = {param.name: param.default for param in checkpoint.capabilities.params}
    assert told == {"temperature": 0.4, "top_k": 200, "top_p": 1.0, "repetition_penalty": 2.0}


def test_a_checkpoint_without_chance_is_the_same_every_time(tmp_path: Path):
    folder = chosen_by_its_author(tmp_path, "custom_voice", do_sample=False)
    assert read_checkpoint(folder).sampling.greedy
    backend = Qwen3Backend(BackendOptions(qwen3_model=str(folder), device="cpu"))
    backend.load(lambda _progress: None)
    voice = backend.condition(Voice("Ida", preset="vivian"))
    once, again = (
        b"".join(chunk.tobytes() for chunk in heard(backend, voice, seed)) for seed in (1, 2)
    )
    assert once == again
    backend.unload()


def test_a_speakers_number_may_be_in_a_list(tmp_path: Path):
    """As the package takes it."""
    folder = Path(
        shutil.copytree(small_checkpoint("custom_voice", groups=FEW_GROUPS), tmp_path / "model")
    )
    config = json.loads((folder / "config.json").read_text())
    numbers = config["talker_config"]["spk_id"]
    sounds = []
    for listed in (False, True):
        config["talker_config"]["spk_id"] = {
            name: [number] if listed else number for name, number in numbers.items()
        }
        (folder / "config.json").write_text(json.dumps(config))
        backend = Qwen3Backend(BackendOptions(qwen3_model=str(folder), device="cpu"))
        backend.load(lambda _progress: None)
        voice = backend.condition(Voice("Ida", preset="vivian"))
        sounds.append(b"".join(chunk.tobytes() for chunk in heard(backend, voice, 1)))
        backend.unload()
    assert sounds[0] == sounds[1]


def heard(backend: Qwen3Backend, voice: Conditioning, seed: int) -> list[Samples]:
    """A line's sound, also of one that doesn't end by itself."""
    chunks = []
    with suppress(SpeechFailed):
        chunks.extend(backend.speak(SpeechRequest("Yes.", voice, seed=seed)))
    return chunks
