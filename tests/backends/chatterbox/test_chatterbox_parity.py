"""For a seed, Chatterbox makes the tokens and the sound that the package's own `generate` makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from chatterbox_checkpoint import (
    BY_NAME,
    VARIANTS,
    checkpoint,
    opened,
    request,
    sample_clip,
    voice_of,
    whole,
)

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.backends.base import Conditioning
from studio.backends.chatterbox.backend import ChatterboxBackend
from studio.voices.speaker import Voice

pytestmark = pytest.mark.models
torch = pytest.importorskip("torch", reason="the model packages are not installed")
pytest.importorskip("chatterbox", reason="the model packages are not installed")

TEXT = "well… come in: it is on — now"


class Package:
    """The package's own model, spoken one line after the other."""

    def __init__(self, variant: str, folder: Path, device: str) -> None:
        from studio.backends.chatterbox.chatterbox_model import load_package

        self.variant = variant
        self.model = load_package(BY_NAME[variant], folder, device)
        self._builtin = self.model.conds

    def take(self, voice: Voice, folder: Path) -> None:
        if voice.sample is None:
            self.model.conds = self._builtin
            return
        samples, options = voice.sample.clip.samples, {}
        if self.variant == "chatterbox-turbo":
            # Its own evening of loudness makes float64 with numpy 2, which it then refuses.
            samples = self.model.norm_loudness(samples, STUDIO_RATE_HZ).astype(np.float32)
            options = {"norm_loudness": False}
        soundfile.write(folder / "sample.wav", samples, STUDIO_RATE_HZ, subtype="FLOAT")
        self.model.prepare_conditionals(folder / "sample.wav", **options)

    def speak(self, text: str, seed: int, **params: float) -> Samples:
        if self.variant == "chatterbox-multilingual":
            # Its default, 2.0, is not the studio's.
            params = {"repetition_penalty": 1.2, **params, "language_id": "en"}
        torch.manual_seed(seed)
        return self.model.generate(text, **params)[0].cpu().numpy()


ON_CUDA = [
    pytest.mark.gpu,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
PAIRS = [
    *((variant, "cpu") for variant in VARIANTS),
    *(pytest.param((variant, "cuda"), marks=ON_CUDA) for variant in VARIANTS),
]


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def pair(request, tmp_path_factory) -> Iterator[tuple[ChatterboxBackend, Package]]:
    variant, device = request.param
    folder = checkpoint(variant, tmp_path_factory, full_size=device == "cuda")
    with opened(variant, folder, device, package_ends=True) as backend:
        yield backend, Package(variant, folder, device)


@contextmanager
def seen_by(s3gen: Any) -> Iterator[list[torch.Tensor]]:
    """The sequences of tokens, sample included, that an S3Gen embeds."""
    seen: list[torch.Tensor] = []
    hook = s3gen.flow.input_embedding.register_forward_pre_hook(
        lambda _module, tokens: seen.append(tokens[0].long())
    )
    yield seen
    hook.remove()


def mine(
    backend: ChatterboxBackend, conditioning: Conditioning, seed: int, **params: float
) -> Samples:
    language = "en" if backend.capabilities.languages else None
    line = request(TEXT, conditioning, seed=seed, language=language, params=params)
    return whole(backend.speak(line))


def check_equal(
    pair: tuple[ChatterboxBackend, Package], voice: Voice, folder: Path, **params: float
) -> None:
    backend, package = pair
    conditioning = backend.condition(voice)
    package.take(voice, folder)
    with seen_by(backend._model._package.s3gen) as my_tokens:
        my_sound = mine(backend, conditioning, 3, **params)
    with seen_by(package.model.s3gen) as their_tokens:
        their_sound = package.speak(TEXT, 3, **params)
    assert len(my_tokens) == len(their_tokens) == 1
    assert torch.equal(my_tokens[0], their_tokens[0])
    np.testing.assert_allclose(my_sound, their_sound, atol=1e-4)


def test_the_builtin_voice(pair, tmp_path: Path) -> None:
    check_equal(pair, Voice("Ida"), tmp_path)


def test_a_cloned_voice(pair, tmp_path: Path) -> None:
    check_equal(pair, voice_of("Tom", 110, pair[0].name), tmp_path)


def test_settings_of_a_line(pair, tmp_path: Path) -> None:
    settings = {"temperature": 1.3, "top_p": 0.6, "repetition_penalty": 1.7}
    if pair[0].name == "chatterbox-turbo":
        settings["top_k"] = 40
    else:
        settings |= {"exaggeration": 1.1, "cfg_weight": 0.9, "min_p": 0.001}
    check_equal(pair, Voice("Ida"), tmp_path, **settings)


def test_another_seed_is_another_sound(pair) -> None:
    backend, _ = pair
    conditioning = backend.condition(Voice("Ida"))
    one, other = (mine(backend, conditioning, seed) for seed in (3, 4))
    n_samples = min(len(one), len(other))
    assert np.abs(one[:n_samples] - other[:n_samples]).max() > 0.01


def test_guidance_of_zero_is_the_guided_model_without_its_second_row(pair, tmp_path: Path) -> None:
    """The English package itself fails at a weight of 0; next to it both are the same."""
    backend, package = pair
    if backend.name == "chatterbox-turbo":
        pytest.skip("turbo has no guidance")
    conditioning = backend.condition(Voice("Ida"))
    package.take(Voice("Ida"), tmp_path)
    without = mine(backend, conditioning, 3, cfg_weight=0.0)
    np.testing.assert_allclose(without, package.speak(TEXT, 3, cfg_weight=1e-9), atol=1e-4)


def test_a_recording_in_another_voice(pair, tmp_path: Path) -> None:
    from chatterbox.vc import ChatterboxVC

    backend, package = pair
    conditioning = backend.condition(voice_of("Tom", 110, backend.name))
    package.take(voice_of("Tom", 110, backend.name), tmp_path)
    recording = sample_clip(180, 0.9)
    at_rate = Clip(np.ascontiguousarray(recording.samples[::3]) * 0.5, 8_000)
    soundfile.write(tmp_path / "said.wav", at_rate.samples, at_rate.rate_hz, subtype="FLOAT")
    converter = ChatterboxVC(package.model.s3gen, package.model.device, package.model.conds.gen)
    torch.manual_seed(5)
    theirs = converter.generate(tmp_path / "said.wav")[0].cpu().numpy()
    made = backend.convert(at_rate, conditioning, seed=5)
    assert made.rate_hz == STUDIO_RATE_HZ
    assert made.duration_s == pytest.approx(at_rate.duration_s, abs=0.04)
    np.testing.assert_allclose(made.samples, theirs, atol=1e-4)


def test_nothing_is_left_on_the_model(pair) -> None:
    backend, _ = pair
    package = backend._model._package
    modules = [*package.t3.modules(), *package.s3gen.modules(), *package.ve.modules()]

    def state() -> list[object]:
        kept = [set(vars(module)) for module in modules]
        hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules]
        return [kept, hooks, package.conds, package.t3.tfmr.config.to_dict()]

    before = state()
    mine(backend, backend.condition(voice_of("Tom", 110, backend.name)), 3)
    assert state() == before
