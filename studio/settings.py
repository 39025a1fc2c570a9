"""Every environment variable, once, typed. Read by the composition root only."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AnyHttpUrl,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from studio.errors import SettingError
from studio.storage.workspace import default_workspace

_SECRETS = (
    "TTS_REMOTE_KEY",
    "TTS_REMOTE_URLS",  # a URL may hold a password
    "TABLEREAD_API_KEY",
    "TABLEREAD_AUTH",
)
_FILE = "_FILE"
_MAX_SECRET_CHARS = 10_000
_MAX_CONFIG_CHARS = 100_000
_MAX_KEY_PARTS = 500  # of which n take n² of memory


def _listed(value: object) -> object:
    """Split at commas; an empty part counts as not there."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


_DEPRECATED_TUNING = {
    *("compiled", "fused", "fused-sampler", "flash-decoding"),
    *("any-sampling", "batched-prefill", "captured-prefill"),
}
"""Once ways of decoding on a card; what has proved faster there is always on."""

_DEPRECATED_VARIABLES = {"TTS_BATCH_COMPILE", "TTS_BATCH_FUSE"}
"""Accepted in a configuration file, without effect, for the same reason."""


def _live_tuning(value: object) -> object:
    """Names that still have an effect."""
    listed = _listed(value)
    if not isinstance(listed, list):
        return listed
    return [one for one in listed if one not in _DEPRECATED_TUNING]


def _paired(value: object) -> object:
    """Read `name=value` pairs with commas between them; names in small letters."""
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    if not all(name.strip() and equals and one.strip() for name, equals, one in pairs):
        raise ValueError("write pairs such as alloy=Ida, echo=Tom")
    return {name.strip().casefold(): one.strip() for name, _, one in pairs}


def _sendable(key: SecretStr) -> SecretStr:
    """A key goes into a header, which holds no spaces or signs beyond ASCII."""
    value = key.get_secret_value().strip()
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise ValueError("it holds a space or a sign that can't be sent")
    return SecretStr(value)


def _as_root_path(value: str) -> str:
    """A path with a slash in front and none at its end, or a URL."""
    root = value.strip().rstrip("/")
    if _ROOT_URL.fullmatch(root):
        return root
    root = f"/{root.lstrip('/')}" if root else ""
    if not _ROOT_PATH.fullmatch(root):
        raise ValueError("write a path such as /tts, or its URL such as https://example.com/tts")
    return root


_SEGMENTS = r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)*"
_ROOT_PATH = re.compile(_SEGMENTS)
_ROOT_URL = re.compile(rf"https?://[A-Za-z0-9.:\[\]-]+{_SEGMENTS}")

_Hosts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
_RootPath = Annotated[str, AfterValidator(_as_root_path)]
_Key = Annotated[SecretStr | None, AfterValidator(lambda key: key and _sendable(key))]


class Settings(BaseSettings):
    """The studio's configuration.

    Each field names its variable; its docstring is the text of docs/operate/configuration.md.
    """

    # Lists stand in the environment with commas, not as JSON, so nothing is decoded beforehand.
    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        case_sensitive=True,
        allow_inf_nan=False,
        enable_decoding=False,
        env_ignore_empty=True,  # or one would hide what the file says
        use_attribute_docstrings=True,
    )

    backend: str = Field(default="auto", validation_alias="TTS_BACKEND")
    """The voice engine; `auto` takes the best that is ready and faster than speech here."""

    max_concurrency: int = Field(default=3, validation_alias="TTS_MAX_CONCURRENCY", ge=1, le=256)
    """Segments rendered at the same time, 1 to 256.

    Never exceeded on a backend without slots of its own.
    """

    eviction_enabled: bool = Field(default=True, validation_alias="MODEL_EVICTION_ENABLED")
    """Whether idle models are unloaded."""

    idle_timeout_s: float = Field(
        default=900.0, validation_alias="MODEL_IDLE_TIMEOUT_SECONDS", ge=0
    )
    """Seconds without use after which a model is unloaded; 0 keeps it."""

    idle_check_interval_s: float = Field(
        default=60.0, validation_alias="MODEL_IDLE_CHECK_INTERVAL_SECONDS", gt=0
    )
    """Seconds between two checks for idle models."""

    amp_on_cuda: bool = Field(default=False, validation_alias="TTS_ENABLE_AMP_ON_CUDA")
    """Mixed precision for Chatterbox on CUDA."""

    tf32: bool = Field(default=True, validation_alias="TTS_TF32")
    """`false`: codec and vocoder multiply 24 bits instead of 10 on CUDA, in twice the time.

    With 10, as torch has it by itself, the difference is 57 dB below the sound (measured with
    random weights); the package of Qwen3-TTS multiplies 7 bits, and differs at 35 dB.
    """

    device: str = Field(
        default="auto", validation_alias="TTS_DEVICE", pattern=r"^(auto|cpu|mps|cuda(:\d{1,2})?)$"
    )
    """Where models run: `auto` (the best there is), `cpu`, `mps`, `cuda`, or one card: `cuda:1`.

    That is the second of the cards that `CUDA_VISIBLE_DEVICES` leaves; the studio doesn't see
    the others.
    """

    chatterbox_model: str | None = Field(default=None, validation_alias="CHATTERBOX_MODEL")
    """Chatterbox's weights, for the model whose files they hold.

    A name on the hub (`owner/model`, `owner/model@revision`) or a local folder. Not set: the
    package's own weights.
    """

    chatterbox_turbo_model: str | None = Field(
        default=None, validation_alias="CHATTERBOX_TURBO_MODEL"
    )
    """The same for the turbo model alone."""

    chatterbox_multilingual_model: str | None = Field(
        default=None, validation_alias="CHATTERBOX_MULTILINGUAL_MODEL"
    )
    """The same for the multilingual model alone."""

    package_ends: bool = Field(default=False, validation_alias="CHATTERBOX_PACKAGE_ENDS")
    """`true`: Chatterbox Multilingual ends lines by its package's own rule, which may cut them."""

    qwen3_model: str | None = Field(default=None, validation_alias="QWEN3_TTS_MODEL")
    """Qwen3-TTS's weights: a name on the hub, with or without `@revision`, or a local folder.

    Not set: `Qwen/Qwen3-TTS-12Hz-0.6B-Base`.
    """

    reference_silence_s: float = Field(
        default=0.5, validation_alias="TTS_REFERENCE_SILENCE_SECONDS", ge=0, le=5
    )
    """Seconds of silence after a sample of Qwen3-TTS, 0 to 5.

    It keeps the sample's last word out of the line.
    """

    batch_slots: int | None = Field(default=None, validation_alias="TTS_BATCH_SIZE", ge=1, le=64)
    """Lines that a model decodes together, 1 to 64.

    Not set: on CUDA as many as the memory holds, at most 64; on an x86 processor 8 of Qwen3-TTS,
    whose matrices are whole numbers there; elsewhere one line at a time.
    """

    batch_positions: int | None = Field(
        default=None, validation_alias="TTS_BATCH_POSITIONS", ge=256, le=8_192
    )
    """Positions (prompt and frames) of a line's slot, 256 to 8192.

    Not set: with Qwen3-TTS 2048, or 1024 where fewer than 8 lines of those fit.
    """

    batch_max_wait_ms: float = Field(
        default=50.0, validation_alias="TTS_BATCH_MAX_WAIT_MS", ge=0, le=10_000
    )
    """Milliseconds that an idle engine waits for further lines before it starts the first one.

    Up to 10,000; it never waits with a line that somebody listens to.
    """

    batch_continuous: bool = Field(default=True, validation_alias="TTS_BATCH_CONTINUOUS")
    """`true`: continuous batching, a slot is refilled while other lines run.

    `false`: all slots finish before the next batch.
    """

    batch_tuning: Annotated[frozenset[Literal["float32"]], BeforeValidator(_live_tuning)] = Field(
        default=frozenset(), validation_alias="TTS_BATCH_TUNING"
    )
    """`float32`: on an x86 processor Qwen3-TTS multiplies in 32 bits instead of whole numbers, and
    makes lines one by one.

    That is three times as slow.
    """

    install_voices: bool = Field(default=True, validation_alias="TABLEREAD_INSTALL_VOICES")
    """`false`: `serve` doesn't download a natural voice by itself, as with `--no-voices`.

    It does so while the page is open, where `auto` has nothing but the draft voice to speak with.
    """

    remote_urls: Annotated[tuple[AnyHttpUrl, ...], BeforeValidator(_listed)] = Field(
        default=(), validation_alias="TTS_REMOTE_URLS"
    )
    """Base URLs of speech servers, separated by commas; `/v1` may be left out."""

    remote_model: str | None = Field(default=None, validation_alias="TTS_REMOTE_MODEL")
    """The model to request from the speech servers; not set: what each has."""

    remote_key: _Key = Field(default=None, validation_alias="TTS_REMOTE_KEY")
    """The speech servers' key, sent as bearer token; in no message and no log."""

    remote_concurrency: int = Field(
        default=4, validation_alias="TTS_REMOTE_CONCURRENCY", ge=1, le=64
    )
    """Lines in flight on each speech server, 1 to 64."""

    remote_timeout_s: float = Field(
        default=120.0, validation_alias="TTS_REMOTE_TIMEOUT_SECONDS", gt=0
    )
    """Seconds that one try at a line may take on a speech server."""

    remote_patience_s: float = Field(
        default=180.0, validation_alias="TTS_REMOTE_PATIENCE_SECONDS", ge=0
    )
    """Seconds that lines wait while no speech server answers, before the render ends."""

    workspace: Path = Field(
        default_factory=default_workspace, validation_alias="TABLEREAD_WORKSPACE"
    )
    """Folder of speakers, projects and renders.

    Not set: `workspace` next to `launch.py`; for a package `Tableread` in the user's home.
    """

    auth: SecretStr | None = Field(default=None, validation_alias="TABLEREAD_AUTH")
    """`NAME:PASSWORD`: the page asks for these; not set: it asks for nothing.

    As `--auth`, which every user of the machine can read in the list of processes.
    """

    auth_file: Path | None = Field(default=None, validation_alias="TABLEREAD_AUTH_FILE")
    """A file that holds the same, in place of the variable."""

    api_key: _Key = Field(default=None, validation_alias="TABLEREAD_API_KEY")
    """What programs send as bearer key; not set: they need what the page needs."""

    api_key_file: Path | None = Field(default=None, validation_alias="TABLEREAD_API_KEY_FILE")
    """A file that holds the same, in place of the variable."""

    voice_names: Annotated[dict[str, str], BeforeValidator(_paired)] = Field(
        default_factory=dict, validation_alias="TABLEREAD_VOICE_NAMES"
    )
    """Voices for names that programs send, such as OpenAI's: `alloy=Ida, echo=Tom`.

    Not set: a name that the studio doesn't know, if it is one of OpenAI's, is one of the voices.
    """

    any_voice: bool = Field(default=False, validation_alias="TABLEREAD_ANY_VOICE")
    """Whether a program may ask for a voice by any name: one that nobody has is the engine's own.

    Otherwise that is an error, except for the names of OpenAI's voices.
    """

    allowed_hosts: _Hosts = Field(default=(), validation_alias="TABLEREAD_ALLOWED_HOSTS")
    """Further host names by which the studio may be reached, separated by commas."""

    root_path: _RootPath = Field(default="", validation_alias="GRADIO_ROOT_PATH")
    """The path under which a reverse proxy has the studio, such as `/tts`, or its whole URL.

    The proxy may pass the path on or strip it. Not set: the studio is at the root of its host.
    """

    log_format: Literal["text", "json"] | None = Field(
        default=None, validation_alias="TABLEREAD_LOG_FORMAT"
    )
    """`text` or `json`, an object a line: how the server logs, with a line for each request.

    Not set: text, with a line for each refused one where no other machine reaches the studio.
    """

    visitor_gb: float = Field(
        default=2.0, validation_alias="TABLEREAD_VISITOR_GB", ge=0.05, le=10_000
    )
    """Gigabytes that each visitor of a shared studio may keep on the disk, from 0.05 on."""

    space_id: str | None = Field(default=None, validation_alias="SPACE_ID")
    """Set by the platform of a Hugging Face Space: its name."""

    space_hosts: _Hosts = Field(default=(), validation_alias="SPACE_HOST")
    """Set by the platform: the Space's hosts, separated by commas."""

    space_port: int = Field(default=7860, validation_alias="GRADIO_SERVER_PORT", ge=1, le=65535)
    """Set by the platform: the port at which the Space is reached."""

    zero_gpu: bool = Field(default=False, validation_alias="SPACES_ZERO_GPU")
    """Set by the platform: whether the Space's card is lent for seconds at a time."""

    @property
    def is_space(self) -> bool:
        return self.space_id is not None

    def keeps_in(self, storage: Path) -> bool:
        """Whether a Space's storage is there and nobody chose another workspace."""
        chosen = "workspace" in self.model_fields_set
        return self.is_space and not chosen and os.access(storage, os.W_OK)

    @model_validator(mode="before")
    @classmethod
    def _as_given(cls, given: dict[str, Any]) -> dict[str, Any]:
        """A variable that is empty or blank counts as not set; files of secrets are read.

        Raises:
            SettingError: A secret is given twice, or its file can't be read.
        """
        filled = {name: value for name, value in given.items() if str(value).strip()}
        secrets = {name: name.removesuffix(_FILE) for name in filled if name.endswith(_FILE)}
        for file, name in secrets.items():
            if name in filled:
                raise SettingError(f"{name} and {file} are both set; unset one of them.")
            filled[name] = _read_secret(file, Path(str(filled[file]).strip()))
        return filled

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment takes precedence over the file."""
        file = TomlConfigSettingsSource(settings_cls, config_file())
        return (init_settings, env_settings, file)

    @classmethod
    def from_environment(cls) -> Settings:
        """Read the variables, and the configuration file where a variable isn't set.

        Raises:
            SettingError: Names every variable whose value can't be used, and why.
        """
        try:
            check_config_file(cls)
            return cls()
        except ValidationError as error:
            raise SettingError(" ".join(_sentence(detail) for detail in error.errors())) from None


def _read_secret(variable: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_SECRET_CHARS).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it isn't text"
        raise SettingError(f"{variable}={path} can't be read ({reason}).") from error
    if not text:
        raise SettingError(f"{variable}={path} can't be used: the file is empty.")
    return text


def config_file() -> Path:
    """The configuration file, which need not be there: `TABLEREAD_CONFIG` or the user's own."""
    if named := os.environ.get("TABLEREAD_CONFIG", "").strip():
        return Path(named).expanduser()
    if os.name == "nt":
        folder = os.environ.get("APPDATA") or "~/AppData/Roaming"
    else:
        folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "tableread" / "config.toml"


def check_config_file(settings: type[Settings]) -> None:
    """Check that the configuration file is TOML whose keys are variables of the studio.

    Raises:
        SettingError: It isn't, or the one that `TABLEREAD_CONFIG` names isn't there.
    """
    path = config_file()
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_CONFIG_CHARS + 1)  # and no more: a device never ends
        if len(text) > _MAX_CONFIG_CHARS:
            raise SettingError(f"{path} can't be read as TOML: it is larger than 100 kB.")
        if max(line.count(".") for line in text.split("\n")) > _MAX_KEY_PARTS:
            raise SettingError(f"{path} can't be read as TOML: a line has too many dots.")
        given = tomllib.loads(text)
    except FileNotFoundError:
        if os.environ.get("TABLEREAD_CONFIG", "").strip():
            raise SettingError(f"TABLEREAD_CONFIG={path} can't be read: it isn't there.") from None
        return
    except OSError as error:
        raise SettingError(f"{path} can't be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{path} can't be read as TOML: {error}.") from error
    known = {str(field.validation_alias) for field in settings.model_fields.values()}
    unknown = sorted(set(given) - known - _DEPRECATED_VARIABLES)
    if unknown:
        names = ", ".join(unknown[:5])
        raise SettingError(
            f"{path}: the studio has no variable {names}. The keys are the variables' names, such "
            'as TTS_BACKEND = "draft".'
        )


def _sentence(detail: Mapping[str, object]) -> str:
    place = detail["loc"]
    assert isinstance(place, tuple)
    message = str(detail["msg"]).removeprefix("Value error, ")
    if not message[:2].isupper():
        message = message[0].lower() + message[1:]
    value = "" if place[0] in _SECRETS else f"={detail['input']}"
    return f"{place[0]}{value} can't be used: {message}."
