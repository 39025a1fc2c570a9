import ast
import inspect
from pathlib import Path

import pytest
from environment import settings_from
from ports import reserve_port
from pydantic import AnyHttpUrl, SecretStr

from studio import app, settings
from studio.cli.arguments import build_parser
from studio.cli.serve import ServeArguments
from studio.errors import SettingError
from studio.settings import Settings


def test_an_empty_environment_gives_the_documented_defaults() -> None:
    settings = settings_from({})
    assert settings.backend == "auto"
    assert settings.max_concurrency == 3
    assert settings.eviction_enabled
    assert (settings.idle_timeout_s, settings.idle_check_interval_s) == (900, 60)
    assert not settings.amp_on_cuda
    assert settings.chatterbox_model is settings.qwen3_model is None
    assert settings.reference_silence_s == 0.5
    assert settings.batch_slots is settings.batch_positions is None
    assert (settings.batch_max_wait_ms, settings.batch_continuous) == (50, True)
    assert settings.tf32 is True
    assert settings.device == "auto"
    assert settings.remote_patience_s >= 180
    assert settings.visitor_gb == 2.0


def test_every_variable_is_read() -> None:
    settings = settings_from(
        {
            "TTS_BACKEND": "draft",
            "TTS_MAX_CONCURRENCY": "8",
            "MODEL_EVICTION_ENABLED": "false",
            "MODEL_IDLE_TIMEOUT_SECONDS": "2.5",
            "MODEL_IDLE_CHECK_INTERVAL_SECONDS": "1",
            "TTS_ENABLE_AMP_ON_CUDA": "true",
            "CHATTERBOX_MODEL": "/models/chatterbox",
            "QWEN3_TTS_MODEL": "ada/voice",
            "TTS_REFERENCE_SILENCE_SECONDS": "0.25",
            "TTS_BATCH_SIZE": "16",
            "TTS_BATCH_POSITIONS": "1024",
            "TTS_BATCH_MAX_WAIT_MS": "20",
            "TTS_BATCH_CONTINUOUS": "false",
            "TTS_BATCH_TUNING": "any-sampling, fused-sampler, float32",
            "TTS_BATCH_COMPILE": "true",
            "TTS_BATCH_FUSE": "true",
            "TTS_REMOTE_URLS": "http://one:8091/v1, https://two,",
            "TTS_REMOTE_MODEL": "tts-1",
            "TTS_REMOTE_KEY": "sk-0123",
            "TTS_REMOTE_CONCURRENCY": "16",
            "TTS_REMOTE_TIMEOUT_SECONDS": "30",
            "TTS_REMOTE_PATIENCE_SECONDS": "240",
            "TTS_DEVICE": "cuda:1",
            "TABLEREAD_WORKSPACE": "/somewhere",
            "TABLEREAD_VISITOR_GB": "0.5",
            "SPACE_HOST": "a-b.hf.space,studio.example.com",
            "SOMETHING_ELSE": "is left alone",
        }
    )
    assert settings == Settings.model_construct(
        backend="draft",
        max_concurrency=8,
        eviction_enabled=False,
        idle_timeout_s=2.5,
        idle_check_interval_s=1.0,
        amp_on_cuda=True,
        chatterbox_model="/models/chatterbox",
        qwen3_model="ada/voice",
        reference_silence_s=0.25,
        batch_slots=16,
        batch_positions=1024,
        batch_max_wait_ms=20.0,
        batch_continuous=False,
        batch_tuning=frozenset({"float32"}),
        remote_urls=(AnyHttpUrl("http://one:8091/v1"), AnyHttpUrl("https://two")),
        remote_model="tts-1",
        remote_key=SecretStr("sk-0123"),
        remote_concurrency=16,
        remote_patience_s=240.0,
        device="cuda:1",
        remote_timeout_s=30.0,
        workspace=Path("/somewhere"),
        visitor_gb=0.5,
        space_hosts=("a-b.hf.space", "studio.example.com"),
    )


def test_an_empty_value_counts_as_not_set() -> None:
    assert settings_from({"TTS_MAX_CONCURRENCY": " "}).max_concurrency == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TTS_MAX_CONCURRENCY", "0"),
        ("TTS_MAX_CONCURRENCY", "many"),
        ("TTS_MAX_CONCURRENCY", "-3"),
        ("TTS_MAX_CONCURRENCY", "2.5"),
        ("MODEL_EVICTION_ENABLED", "perhaps"),
        ("MODEL_IDLE_TIMEOUT_SECONDS", "-1"),
        ("MODEL_IDLE_TIMEOUT_SECONDS", "nan"),
        ("MODEL_IDLE_CHECK_INTERVAL_SECONDS", "0"),
        ("MODEL_IDLE_CHECK_INTERVAL_SECONDS", "inf"),
        ("TTS_ENABLE_AMP_ON_CUDA", "half"),
        ("TTS_REFERENCE_SILENCE_SECONDS", "5.1"),
        ("TTS_REFERENCE_SILENCE_SECONDS", "-0.5"),
        ("TTS_BATCH_SIZE", "0"),
        ("TTS_BATCH_SIZE", "65"),
        ("TTS_BATCH_POSITIONS", "100"),
        ("TTS_BATCH_MAX_WAIT_MS", "-1"),
        ("TTS_BATCH_MAX_WAIT_MS", "nan"),
        ("TTS_BATCH_CONTINUOUS", "perhaps"),
        ("TTS_REMOTE_CONCURRENCY", "0"),
        ("TTS_REMOTE_TIMEOUT_SECONDS", "0"),
    ],
)
def test_an_unusable_value_is_named_with_its_variable(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name) as caught:
        settings_from({name: value})
    assert value in str(caught.value)


def test_all_unusable_values_are_named_at_once() -> None:
    with pytest.raises(SettingError, match=r"TTS_MAX_CONCURRENCY.*MODEL_EVICTION_ENABLED"):
        settings_from({"TTS_MAX_CONCURRENCY": "0", "MODEL_EVICTION_ENABLED": "?"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TTS_REMOTE_URLS", "ftp://ida:secret@host"),
        ("TTS_REMOTE_URLS", "http://one,secret"),
        ("TTS_REMOTE_KEY", "secret with spaces"),
        ("TTS_REMOTE_KEY", "secret\x07"),
        ("TTS_REMOTE_KEY", "secret-für-uns"),
    ],
)
def test_a_secret_that_cannot_be_used_is_not_told(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=rf"{name} can't be used: ") as caught:
        settings_from({name: value})
    assert "secret" not in str(caught.value)


def test_a_secret_is_not_shown() -> None:
    settings = settings_from({"TTS_REMOTE_KEY": " sk-0123 "})
    assert settings.remote_key is not None
    assert settings.remote_key.get_secret_value() == "sk-0123"
    assert "sk-0123" not in repr(settings)


def _attributes_of(tree: ast.AST, *owners: str) -> set[str]:
    """The attributes of variables of these names that code reads."""
    found = (one for one in ast.walk(tree) if isinstance(one, ast.Attribute))
    return {one.attr for one in found if isinstance(one.value, ast.Name) and one.value.id in owners}


def test_every_setting_is_used_by_the_composition_root() -> None:
    """By itself, by a property of the settings, or as the file that holds another one."""
    root, own = (
        ast.parse(Path(inspect.getfile(one)).read_text("utf-8")) for one in (app, settings)
    )
    properties = {
        one.name: _attributes_of(one, "self")
        for one in ast.walk(own)
        if isinstance(one, ast.FunctionDef)
    }
    used = _attributes_of(root, "settings")
    while more := {name for one in used for name in properties.get(one, ())} - used:
        used |= more
    aliases = {name: str(field.validation_alias) for name, field in Settings.model_fields.items()}
    files = {name for name, one in aliases.items() if one.removesuffix("_FILE") != one}
    assert {aliases[name].removesuffix("_FILE") for name in files} <= set(aliases.values())
    assert aliases.keys() - used - files == set()


@pytest.mark.parametrize(
    ("words", "environ", "brings"),
    [
        ([], {}, True),
        (["--no-voices"], {}, False),
        ([], {"TABLEREAD_INSTALL_VOICES": "false"}, False),
    ],
)
def test_a_natural_voice_is_brought_unless_one_says_no(words, environ, brings):
    config = app._server_config(settings_from(environ))
    arguments = build_parser().parse_args(["serve", *words])
    assert ServeArguments.check(arguments, config).brings_voice is brings


@pytest.mark.parametrize("port", [[], ["--port", "7999"]])
@pytest.mark.parametrize("host", ["203.0.113.7", "256.1.1.1", "a" * 300])
def test_a_host_that_isnt_this_machines_is_one_sentence(port, host):
    arguments = build_parser().parse_args(["serve", "--host", host, *port])
    with pytest.raises(SettingError, match=rf"{host}.* can't be used \([^()]+\)"):
        ServeArguments.check(arguments, app._server_config(settings_from({})))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "[127.0.0.1]"])
def test_a_host_that_is_this_machines_is_taken(host):
    for port in ([], ["--port", str(reserve_port())]):
        arguments = build_parser().parse_args(["serve", "--host", host, *port])
        assert ServeArguments.check(arguments, app._server_config(settings_from({}))).host == host
