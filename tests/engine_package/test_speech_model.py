"""The engine as other programs call it, on small real checkpoints."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")
pytest.importorskip("chatterbox", reason="the neural voices' packages are not installed")

from chatterbox_checkpoint import checkpoint, one_thread, small_architecture
from qwen3_checkpoint import FEW_GROUPS, small_checkpoint
from qwen3_speakers import recording, use_one_core
from tiny_hub import TinyHub

import tableread_engine
from studio.audio.clip import write_wav
from studio.backends.base import SpeechRequest
from studio.backends.options import BackendOptions, BatchOptions
from studio.backends.registry import create
from studio.voices.samples import load_sample
from studio.voices.speaker import Voice
from tableread_engine import LineRequest, SpeechModel
from tableread_engine.speech_model import choose_backend

pytestmark = pytest.mark.models

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "engine-api.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
WITHIN = 1e-4
TEXTS = ("The kettle is on.", "And the door is open.", "你好世界")


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("voice") / "ref.wav"
    write_wav(path, recording())
    return path


@pytest.fixture(scope="module")
def qwen3() -> Iterator[SpeechModel]:
    use_one_core()
    folder = small_checkpoint(groups=FEW_GROUPS)
    with SpeechModel.from_pretrained(folder, slots=4, positions=1_024, device="cpu") as model:
        yield model


@pytest.fixture(scope="module", params=["chatterbox", "chatterbox-multilingual"])
def chatterbox(request, tmp_path_factory) -> Iterator[SpeechModel]:
    folder = checkpoint(request.param, tmp_path_factory)
    with small_architecture(request.param), one_thread():
        model = SpeechModel.from_pretrained(folder, slots=4, positions=512, device="cpu")
        yield model
        model.close()


def of_the_studio(name: str, folder: Path, line: LineRequest, sample: Path) -> np.ndarray:
    """The line by the studio's own backend, alone."""
    options = {"qwen3": {"qwen3_model": str(folder)}}.get(name, {"chatterbox_model": str(folder)})
    batch = BatchOptions(slots=4, positions=512 if name != "qwen3" else 1_024, max_wait_s=0)
    backend = create(name, BackendOptions(device="cpu", batch=batch, **options))
    backend.load(lambda _progress: None)
    voice = backend.condition(Voice("Ida", load_sample(sample, transcript=line.transcript)))
    order = SpeechRequest(line.text, voice, line.language, line.seed, line.params)
    spoken = np.concatenate(list(backend.speak(order)))
    backend.unload()
    return spoken


def test_a_line_of_qwen3_is_the_studios(qwen3, sample) -> None:
    line = LineRequest(
        text=TEXTS[0], language="en", reference=sample, transcript="Hello.", seed=7,
        params={"temperature": 0.7},
    )  # fmt: skip
    (made,) = qwen3.generate([line])
    assert made.error is None
    assert (made.samples.dtype, made.sample_rate_hz) == (np.float32, 24_000)
    theirs = of_the_studio("qwen3", small_checkpoint(groups=FEW_GROUPS), line, sample)
    assert np.array_equal(made.samples, theirs)


def test_a_line_of_chatterbox_is_the_studios(chatterbox, sample, tmp_path_factory) -> None:
    line = LineRequest(
        text=TEXTS[0], language="en", reference=sample, seed=7, params={"exaggeration": 0.9}
    )
    (made,) = chatterbox.generate([line])
    assert made.error is None
    folder = checkpoint(chatterbox.backend_name, tmp_path_factory)
    theirs = of_the_studio(chatterbox.backend_name, folder, line, sample)
    assert np.array_equal(made.samples, theirs)


def test_lines_of_one_call_are_those_of_calls_of_their_own(qwen3, sample) -> None:
    lines = [LineRequest(text=text, reference=sample, seed=7) for text in TEXTS] * 2
    together = qwen3.generate(lines)
    assert [one.error for one in together] == [None] * 6
    for line, made in zip(lines, together, strict=True):
        (alone,) = qwen3.generate([line])
        assert len(made.samples) == len(alone.samples)
        assert np.allclose(made.samples, alone.samples, atol=WITHIN)


def test_lines_of_one_call_are_decoded_together(sample) -> None:
    """In hardly more steps than the longest takes alone."""
    use_one_core()
    source = str(small_checkpoint(groups=FEW_GROUPS))
    batch = BatchOptions(slots=4, positions=1_024, max_wait_s=0.5)
    backend = create("qwen3", BackendOptions(qwen3_model=source, device="cpu", batch=batch))
    backend.load(lambda _progress: None)
    with SpeechModel(backend) as model:
        lines = [{"text": TEXTS[0], "reference": sample, "seed": seed} for seed in range(4)]
        steps = [backend.health().steps]
        made = model.generate(lines)
        steps.append(backend.health().steps)
        frames = [len(one.samples) // 1_920 for one in made]
        assert max(frames) <= steps[1] - steps[0] < sum(frames)


def test_a_model_comes_from_the_hub_by_its_name(sample, tmp_path: Path, monkeypatch) -> None:
    folder = small_checkpoint(groups=FEW_GROUPS)
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    with (
        TinyHub(files).serving(monkeypatch, tmp_path),
        SpeechModel.from_pretrained("ada/Qwen3-TTS-small", slots=2, device="cpu") as model,
    ):
        made = model.speak({"text": TEXTS[0], "reference": sample, "seed": 7})
    assert made.error is None
    assert len(made.samples)


def test_a_recording_may_be_a_file_or_an_array(qwen3, sample) -> None:
    samples = load_sample(sample).clip.samples
    stereo = np.stack([samples, samples], axis=1)
    pcm = np.rint(samples * 32_768).astype(np.int16)
    given = [sample, str(sample), samples, (samples, 24_000), (stereo, 24_000), (pcm, 24_000)]
    line = {"text": TEXTS[0], "transcript": "Hello.", "seed": 7}
    first, *others = qwen3.generate([line | {"reference": one} for one in given])
    assert first.error is None
    assert all(np.allclose(one.samples, first.samples, atol=WITHIN) for one in others)
    deeper = qwen3.speak(line | {"reference": (samples, 16_000)})
    assert deeper.error is None
    assert not np.array_equal(deeper.samples, first.samples)


BAD = {
    "no parameter “warmth”": {"warmth": 1},
    "“temperature” must be a number from 0 to 1.5": {"params": {"temperature": 9}},
    "“top_k” must be a whole number": {"top_k": "many"},
    "doesn't speak “Klingon”": {"language": "Klingon"},
    "longer than 400 characters": {"text": "a " * 300},
    "nothing to speak": {"text": "…"},
    "“text” must be text": {"text": 3},
    "“seed” must be a whole number": {"seed": -1},
    "“max_frames” must be a whole number": {"max_new_tokens": 0},
    "can't be found": {"reference": "nowhere.wav"},
    "finite float": {"reference": np.full(48_000, np.nan)},
    "The rate of a recording": {"reference": (np.zeros(48_000), 0)},
    "has no sample": {"reference": None},
}
KINDS = {
    "nothing to speak": tableread_engine.SpeechFailed,
    **dict.fromkeys(
        ["can't be found", "finite float", "The rate of a recording", "has no sample"],
        tableread_engine.SampleRejected,
    ),
}


def test_a_bad_request_fails_alone(qwen3, sample) -> None:
    good = {"text": TEXTS[0], "reference": sample, "seed": 7}
    asked = [good, *(good | bad for bad in BAD.values()), {}, 5, good]
    first, *bad, no_text, no_request, last = qwen3.generate(asked)
    for (message, _), made in zip(BAD.items(), bad, strict=True):
        assert isinstance(made.error, KINDS.get(message, tableread_engine.BadInput)), message
        assert message in str(made.error)
        assert not len(made.samples)
    assert "needs a text" in str(no_text.error)
    assert isinstance(no_request.error, tableread_engine.BadInput)
    assert first.error is None
    assert last.error is None
    assert np.allclose(first.samples, last.samples, atol=WITHIN)


def test_a_line_is_cut_at_its_most_frames(qwen3, chatterbox, sample) -> None:
    for model, frames, samples_per_frame in ((qwen3, 3, 1_920), (chatterbox, 5, 960)):
        line = {"text": TEXTS[0], "reference": sample, "seed": 7}
        made = model.speak(line | {"max_frames": frames})
        assert isinstance(made.error, tableread_engine.SpeechFailed)
        assert 0 < len(made.samples) <= frames * samples_per_frame
        (by_default,) = model.generate([line], max_frames=frames)
        assert np.array_equal(by_default.samples, made.samples)


def test_every_model_has_a_speed(qwen3, sample) -> None:
    line = {"text": TEXTS[0], "reference": sample, "seed": 7}
    plain, fast = qwen3.speak(line), qwen3.speak(line | {"speed": 2.0})
    assert len(fast.samples) == pytest.approx(len(plain.samples) / 2, rel=0.1)


def test_a_closed_model_says_so(sample) -> None:
    model = SpeechModel.from_pretrained(small_checkpoint(groups=FEW_GROUPS), device="cpu")
    assert model.slots >= 1
    model.close()
    made = model.speak({"text": TEXTS[0], "reference": sample})
    assert isinstance(made.error, tableread_engine.ModelUnavailable)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("qwen3", "qwen3"),
        ("chatterbox-turbo", "chatterbox-turbo"),
        ("Qwen/Qwen3-TTS-12Hz-1.7B-Base@main", "qwen3"),
        ("ResembleAI/chatterbox", "chatterbox"),
        ("ResembleAI/chatterbox-turbo", "chatterbox-turbo"),
    ],
)
def test_a_source_says_its_model(source: str, name: str) -> None:
    assert choose_backend(source) == name


def test_a_source_that_does_not_say_its_model(tmp_path: Path) -> None:
    for source in (str(tmp_path), "somebody/voice"):
        with pytest.raises(tableread_engine.SettingError, match="give its backend"):
            choose_backend(source)
    assert choose_backend("somebody/voice", "chatterbox") == "chatterbox"
    with pytest.raises(tableread_engine.SettingError, match="no backend “draft”"):
        choose_backend("somebody/voice", "draft")
    with pytest.raises(tableread_engine.ModelUnavailable, match="holds no Chatterbox Turbo"):
        choose_backend(str(tmp_path), "chatterbox-turbo")
    with pytest.raises(tableread_engine.SettingError, match="from 1"):
        SpeechModel.from_pretrained(small_checkpoint(groups=FEW_GROUPS), slots=0)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_documentation_runs(example: str, sample, monkeypatch) -> None:
    """Those of the package whose names ours may be called by are among them."""
    use_one_core()
    monkeypatch.chdir(sample.parent)
    seen: dict[str, object] = {}
    code = example.replace("path/to/model", str(small_checkpoint(groups=FEW_GROUPS)))
    exec(compile(code, str(PAGE), "exec"), seen)
    made = seen.get("lines") or seen.get("spoken") or seen.get("outputs") or seen.get("audio")
    assert made is not None
    assert len(made)


def test_chatterbox_speaks_under_the_planned_names(sample, tmp_path_factory) -> None:
    folder = checkpoint("chatterbox", tmp_path_factory)
    with small_architecture("chatterbox"), one_thread():
        model = tableread_engine.BatchedFasterQwen3TTS.from_pretrained(
            folder, max_batch_size=2, max_seq_len=512, device="cpu"
        )
        good = {"text": TEXTS[0], "ref_audio": sample, "ref_text": "", "seed": 7}
        outputs = model.generate_voice_clone_batch([good, good | {"language": "de"}])
        model.close()
    (spoken, rate_hz), (failed, _) = outputs
    assert (len(spoken), rate_hz, failed) == (1, 24_000, [])
    assert spoken[0].dtype == np.float32


def run(code: str, folder: Path) -> str:
    code = f"import sys; sys.path[:0] = [{str(ROOT)!r}]\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=True
    )
    return done.stdout


def test_it_loads_neither_the_page_nor_gradio_and_torch_with_a_model_only(tmp_path: Path) -> None:
    loaded = run("import tableread_engine, sys; print(*sys.modules)", tmp_path).split()
    foreign = re.compile(r"(gradio|fastapi|torch|studio\.(ui|server|services|project|app|cli))\b")
    assert not [name for name in loaded if foreign.match(name)]


def test_another_module_named_studio_is_named(tmp_path: Path) -> None:
    (tmp_path / "studio.py").write_text("")
    said = run(
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "try:\n    import tableread_engine\nexcept ImportError as error:\n    print(error)",
        tmp_path,
    )
    assert "Another module named studio" in said
    assert str(tmp_path / "studio.py") in said
