"""On a device that takes one thread at a time, all that models do there is done in its turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import pytest

pytest.importorskip("chatterbox", reason="the neural voices' packages are not installed")
pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import numpy as np
import torch
from chatterbox_checkpoint import BY_NAME, checkpoint, one_thread, small_architecture, voice_of
from qwen3_checkpoint import FEW_GROUPS, small_checkpoint

from studio.backends import device
from studio.backends.base import Backend, SpeechRequest
from studio.backends.batching.line_runner import describe_capacity
from studio.backends.chatterbox.backend import ChatterboxBackend
from studio.backends.chatterbox.s3gen import S3GenDecoder
from studio.backends.device import in_turns, turn
from studio.backends.options import BackendOptions, BatchOptions
from studio.backends.qwen3.backend import Qwen3Backend
from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.qwen3_model import load_model
from studio.backends.qwen3.talker_slots import TalkerRequest
from studio.errors import SpeechFailed

pytestmark = pytest.mark.models

TWO = BatchOptions(slots=2, positions=512, max_wait_s=0.01)
WORK = ("linear", "embedding", "conv1d", "conv_transpose1d", "scaled_dot_product_attention")


class Turn:
    """A reentrant lock that knows whether the asking thread holds it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._mine = threading.local()
        self.taken = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._mine.depth = self.depth + 1
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        self._mine.depth -= 1
        self._lock.release()

    @property
    def depth(self) -> int:
        return getattr(self._mine, "depth", 0)


@dataclass
class Seen:
    """Who worked out of turn, and how much was done in all."""

    turn: Turn = field(default_factory=Turn)
    out_of_turn: list[str] = field(default_factory=list)
    operations: int = 0
    marking: threading.local = field(default_factory=threading.local)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The CPU as a device that takes one thread at a time; every model's operation is looked at."""
    seen = Seen()
    monkeypatch.setitem(device.ONE_AT_A_TIME, "cpu", seen.turn)
    for name in WORK:
        monkeypatch.setattr(torch.nn.functional, name, _looked_at(name, seen))
    monkeypatch.setattr(S3GenDecoder, "watermark", _marked(seen, S3GenDecoder.watermark))
    return seen


def _looked_at(name: str, seen: Seen):
    plain = getattr(torch.nn.functional, name)

    def work(*args, **given):
        seen.operations += 1
        if not seen.turn.depth and not getattr(seen.marking, "now", False):
            seen.out_of_turn.append(f"{name} in {threading.current_thread().name}")
        return plain(*args, **given)

    return work


def _marked(seen: Seen, plain):
    """The watermark is made on the CPU whatever the device is, and waits for nobody."""

    def marked(sound, wave):
        seen.marking.now = True
        try:
            return plain(sound, wave)
        finally:
            seen.marking.now = False

    return marked


@contextmanager
def loaded(name: str, folders: pytest.TempPathFactory) -> Iterator[Backend]:
    with ExitStack() as stack:
        stack.enter_context(one_thread())
        batch = TWO if name.endswith("batched") else BatchOptions()
        if name.startswith("qwen3"):
            folder = _folder(name, folders)
            options = BackendOptions(qwen3_model=folder, device="cpu", batch=batch)
            backend: Backend = Qwen3Backend(options)
        else:
            stack.enter_context(small_architecture("chatterbox"))
            folder = _folder(name, folders)
            options = BackendOptions(chatterbox_model=folder, device="cpu", batch=batch)
            backend = ChatterboxBackend(BY_NAME["chatterbox"], options)
        backend.load(lambda _progress: None)
        yield backend
        backend.unload()


def _folder(name: str, folders: pytest.TempPathFactory) -> str:
    """A small checkpoint, built at its first use."""
    if name.startswith("qwen3"):
        return str(small_checkpoint("base", groups=FEW_GROUPS))
    return str(checkpoint("chatterbox", folders))


@pytest.mark.parametrize("name", ["qwen3", "qwen3, batched", "chatterbox", "chatterbox, batched"])
def test_nothing_is_done_out_of_turn(name: str, seen: Seen, tmp_path_factory) -> None:
    """Two lines and a voice at once, on threads of their own beside the engine's."""
    _folder(name, tmp_path_factory)
    seen.out_of_turn.clear()  # of what checkpoints were built with
    with loaded(name, tmp_path_factory) as backend:
        voice = backend.condition(voice_of("Tom", 110))

        def line(number: int) -> int:
            asked = SpeechRequest("Yes, come in.", voice, language="en", seed=number)
            heard = 0
            with suppress(SpeechFailed):  # random weights need not end
                for chunk in backend.speak(asked):
                    heard += len(chunk)
            return heard

        with ThreadPoolExecutor(3) as pool:
            lines = [pool.submit(line, number) for number in (1, 2)]
            pool.submit(backend.condition, voice_of("Ida", 190)).result()
            assert all(one.result() > 0 for one in lines)
    assert seen.operations > 100
    assert seen.out_of_turn == []


def test_a_line_is_made_as_on_a_mac_in_16_bits() -> None:
    """Its talker, line by line and without graphs, on the CPU; the codec stays in 32 bits."""
    folder = small_checkpoint("base", groups=FEW_GROUPS)
    model = load_model(folder, "cpu", torch.bfloat16, graphs=False)
    assert model.package.talker.dtype is torch.bfloat16
    assert next(model.codec_decoder.parameters()).dtype is torch.float32
    voice = voice_of("Tom", 110).sample
    task = TalkerRequest(
        tokens=model.tokens.line("Yes, come in."),
        voice=model.clone_voice(voice.clip, voice.transcript, 0.0),
        language="english",
        sampling=SamplingParams(),
        seed=1,
        max_frames=6,
    )
    chunks: list[np.ndarray] = []
    with suppress(SpeechFailed):  # random weights need not end
        chunks.extend(model.speak(task))
    samples = np.concatenate(chunks)
    assert samples.dtype == np.float32
    assert 0 < len(samples) <= 6 * model.codec_decoder.total_upsample
    assert np.isfinite(samples).all()
    assert samples.any()


def test_a_turn_is_for_its_device_alone() -> None:
    with turn("cuda:0"), turn("cpu"):
        assert device.ONE_AT_A_TIME.keys() == {"mps"}
    with turn("mps"), turn("mps:0"):  # models call each other
        pass


def test_between_two_items_others_have_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Turn()
    monkeypatch.setitem(device.ONE_AT_A_TIME, "mps", mine)
    ended = []

    def frames() -> Iterator[int]:
        try:
            for number in range(3):
                assert mine.depth == 1
                yield number
        finally:
            ended.append(True)

    for number in in_turns(frames(), "mps"):
        assert mine.depth == 0
        if number == 1:
            break
    assert list(in_turns(iter([1, 2]), "mps")) == [1, 2]


def test_a_fault_gives_the_turn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Turn()
    monkeypatch.setitem(device.ONE_AT_A_TIME, "mps", mine)

    def frames() -> Iterator[int]:
        yield 1
        raise SpeechFailed("no end")

    with pytest.raises(SpeechFailed):
        list(in_turns(frames(), "mps"))
    assert mine.depth == 0


def test_doctor_says_that_nobody_has_tried_it_on_a_mac(monkeypatch) -> None:
    monkeypatch.setattr("studio.backends.device._present", lambda: ("mps", "cpu"))
    said = {
        name: describe_capacity(lambda _: pytest.fail("planned"), BatchOptions(), name)
        for name in ("mps", "cpu")
    }
    assert "nobody has tried on a Mac" in said["mps"]
    assert "Mac" not in said["cpu"]
