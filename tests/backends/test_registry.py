"""What `auto` chooses, and what it says of those it passes over."""

import subprocess
import sys

import pytest

from studio.backends import registry
from studio.backends.base import ALIASES, _note_alias
from studio.backends.engine_cards import card_of
from studio.backends.espeak.backend import DraftBackend
from studio.backends.espeak.espeak_voices import Languages, find_package
from studio.backends.options import BackendOptions
from studio.errors import ModelUnavailable, SettingError
from studio.setup.commands import program


class Neural(DraftBackend):
    """Stands in the registry as a voice with weights."""

    name = "neural"
    title = "Neural"

    def __init__(self, *, reason=None, lacking=None):
        super().__init__()
        self._reason = reason
        self._lacking = lacking

    def unavailable(self):
        return self._reason

    def to_fetch(self):
        return self._lacking


@pytest.fixture
def registered(monkeypatch):
    def register(**backends):
        table = {name: lambda _options, one=one: one for name, one in backends.items()}
        monkeypatch.setattr(registry, "BACKENDS", table)

    return register


def test_the_first_that_can_speak_now_is_taken(registered):
    registered(neural=Neural(), draft=DraftBackend())
    assert registry.choose("auto") == ("neural", None)


def test_better_ones_that_were_passed_over_are_named_with_the_way_to_them(registered):
    registered(
        packages=Neural(reason="Its packages are missing; install them."),
        weights=Neural(lacking="Its weights are not here; choose it by name."),
        draft=DraftBackend(),
    )
    name, reason = registry.choose("auto")
    assert name == "draft"
    assert "better voices: Neural, Neural." in reason
    assert f"{program()} doctor" in reason


def as_fast(speeds):
    """Measured speeds, in seconds of speech a second."""
    return lambda name: speeds.get(name)


def named(name, **options):
    backend = Neural(**options)
    backend.name = backend.title = name
    return backend


def test_the_best_that_is_faster_than_speech_is_taken_by_measurement(registered):
    registered(best=named("best"), good=named("good"), draft=DraftBackend())
    assert registry.choose("auto", measured=as_fast({"best": 1.3, "good": 4.0}))[0] == "best"
    name, reason = registry.choose("auto", measured=as_fast({"best": 0.42, "good": 4.0}))
    assert name == "good"
    assert "best is here too, and makes 0.42 s of speech a second" in reason
    assert "good speaks, since it is fast enough to listen to." in reason


def test_where_none_is_faster_than_speech_the_fastest_is_taken(registered):
    registered(best=named("best"), good=named("good"))
    assert registry.choose("auto", measured=as_fast({"best": 0.3, "good": 0.8}))[0] == "good"


def test_one_that_must_download_is_not_taken_however_fast(registered):
    registered(best=named("best", lacking="Its weights."), good=named("good"))
    assert registry.choose("auto", measured=as_fast({"best": 9.0, "good": 0.5}))[0] == "good"


def test_before_any_measurement_the_device_decides(registered, monkeypatch):
    """Qwen3-TTS is slower than speech on a CPU, and much faster on a card."""
    registered(qwen3=named("qwen3"), kokoro=named("kokoro"), draft=DraftBackend())
    assert registry.choose("auto", BackendOptions(device="cpu"))[0] == "kokoro"
    assert registry.choose("auto", BackendOptions(device="cuda"))[0] == "qwen3"
    measured = as_fast({"qwen3": 1.1})
    assert registry.choose("auto", BackendOptions(device="cpu"), measured)[0] == "qwen3"


def test_the_first_voices_are_small_free_and_speak_without_a_sample():
    everything = [registry.create(name) for name in registry.BACKENDS]
    names = registry.first_voices(everything, "cpu")
    # ZipVoice and Pocket are not for commercial use; Supertonic's licence forbids some uses, so it
    # comes last.
    assert names == ("kokoro", "kitten", "piper", "supertonic")


def test_every_backend_has_a_card_with_its_licences():
    for name in registry.BACKENDS:
        card = card_of(name)
        assert card.summary
        assert card.code_licence or name == "remote"
        assert bool(card.weights_licence) == bool(card.download_bytes)
    forbidden = [name for name in registry.BACKENDS if card_of(name).non_commercial]
    assert forbidden == ["pocket", "zipvoice"]


def test_weights_of_somebody_elses_choice_have_no_licence_of_ours(tmp_path):
    released = registry.find_card(registry.create("qwen3"))
    assert (released.weights_licence, released.download_bytes) == ("Apache-2.0", 2_500_000_000)
    for options in (
        BackendOptions(qwen3_model="someone/tuned", chatterbox_turbo_model="someone/tuned"),
        BackendOptions(qwen3_model=str(tmp_path), chatterbox_turbo_model=str(tmp_path)),
    ):
        for name in ("qwen3", "chatterbox-turbo"):
            card = registry.find_card(registry.create(name, options))
            assert card.weights_licence == "not known here, as the settings name other weights"
            assert card.code_licence == registry.find_card(registry.create(name)).code_licence
            assert not card.free
            assert card.download_bytes is None
    pinned = registry.create(
        "chatterbox", BackendOptions(chatterbox_model="ResembleAI/chatterbox@1")
    )
    assert registry.find_card(pinned).weights_licence == "MIT"
    other = registry.create("chatterbox", BackendOptions(chatterbox_turbo_model="someone/tuned"))
    assert registry.find_card(other).weights_licence == "MIT"


def test_what_nobody_has_tried_on_a_device_is_said():
    qwen3 = registry.create("qwen3")
    assert registry.describe_engine(qwen3, "mps")["untried"] == "Nobody has tried it on a Mac yet."
    assert registry.describe_engine(qwen3, "cpu")["untried"] == ""
    assert registry.describe_engine(registry.create("draft"), "mps")["untried"] == ""


def test_a_server_that_nobody_named_is_no_better_voice(registered):
    server = Neural(reason="No speech server is named.")
    server.name, server.title = "remote", "Speech server"
    registered(remote=server, weights=Neural(lacking="Its weights."), draft=DraftBackend())
    _, reason = registry.choose("auto")
    assert "better voices: Neural." in reason
    registered(remote=server, draft=DraftBackend())
    assert registry.choose("auto") == ("draft", None)


def test_a_name_is_taken_though_it_must_download(registered):
    registered(neural=Neural(lacking="Its weights are not here."), draft=DraftBackend())
    assert registry.choose("neural") == ("neural", None)


def test_nothing_can_run(registered):
    registered(neural=Neural(reason="No packages."))
    with pytest.raises(ModelUnavailable, match=r"No voice can run here\. Neural: No packages\."):
        registry.choose("auto")


def test_a_backend_is_made_with_the_options_given(monkeypatch):
    got = []

    def make(options):
        got.append(options)
        return DraftBackend()

    monkeypatch.setattr(registry, "BACKENDS", {"draft": make})
    options = BackendOptions(device="cpu")
    registry.create("draft", options)
    registry.create("draft")
    assert got == [options, BackendOptions()]


def test_offers_tell_what_is_ready(registered):
    registered(neural=Neural(lacking="Its weights are not here."), draft=DraftBackend())
    assert [offer.ready for offer in registry.offers()] == [False, True]


def test_an_unknown_name(registered):
    registered(draft=DraftBackend())
    with pytest.raises(SettingError, match="draft"):
        registry.choose("nobody")


def test_old_names_are_accepted_with_a_notice(caplog):
    _note_alias.cache_clear()
    for alias, name in ALIASES.items():
        assert registry.create(alias).name == name
        assert registry.choose(alias) == (name, None)
        assert caplog.text.count(f"“{alias}” is called “{name}” now") == 1
    assert ALIASES.keys().isdisjoint(registry.BACKENDS)
    assert set(ALIASES.values()) <= registry.BACKENDS.keys()


def test_to_list_all_backends_imports_neither_a_model_nor_an_http_client():
    """Most of what a start would cost, for voices that this one may never use."""
    listed = (
        "import sys; from studio.backends.registry import offers; offers();"
        "print({'torch', 'httpx', 'huggingface_hub.hf_api', 'tenacity'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", listed], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("name", list(registry.BACKENDS))
def test_codes_of_one_language_name_are_one_language(name):
    """The page's lists have each name once, so nothing may be lost by that."""
    backend = registry.create(name)
    by_name: dict[str, set] = {}
    for code, title in backend.capabilities.languages.items():
        by_name.setdefault(title.strip().lower(), set()).add(code)
    twins = {title: codes for title, codes in by_name.items() if len(codes) > 1}
    if name != "draft":
        assert twins == {}
        return
    languages = Languages(find_package().folder / "espeak-ng-data")
    assert twins
    for codes in twins.values():
        assert len({languages.find(code) for code in codes}) == 1, codes
