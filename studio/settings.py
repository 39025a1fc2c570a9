"""Every environment variable, once, typed. Read by the composition root only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AnyHttpUrl,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from studio.errors import SettingError
from studio.storage.installation import default_workspace

_SECRETS = ("TTS_REMOTE_KEY", "TTS_REMOTE_URLS", "TABLEREAD_API_KEY")  # a URL may hold a password


def _listed(value: object) -> object:
    """Split at commas; an empty part counts as not there."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def _sendable(key: SecretStr) -> SecretStr:
    """A key goes into a header, which holds no spaces or signs beyond ASCII."""
    value = key.get_secret_value().strip()
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise ValueError("it holds a space or a sign that can't be sent")
    return SecretStr(value)


class Settings(BaseSettings):
    """The studio's configuration.

    Each field names its variable; its docstring is the text of docs/operate/configuration.md.
    """

    # Lists stand in the environment with commas, not as JSON, so nothing is decoded beforehand.
    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        case_sensitive=True,
        enable_decoding=False,
        use_attribute_docstrings=True,
    )

    backend: Annotated[str, Field(validation_alias="TTS_BACKEND")] = "auto"
    """The voice engine; `auto` takes the best one that can speak now."""

    max_concurrency: Annotated[int, Field(validation_alias="TTS_MAX_CONCURRENCY", ge=1, le=256)] = 3
    """Segments rendered at the same time, 1 to 256.

    Never exceeded on a backend without slots of its own.
    """

    eviction_enabled: Annotated[bool, Field(validation_alias="MODEL_EVICTION_ENABLED")] = True
    """Whether idle models are unloaded."""

    idle_timeout_s: Annotated[
        float,
        Field(validation_alias="MODEL_IDLE_TIMEOUT_SECONDS", ge=0, allow_inf_nan=False),
    ] = 900.0
    """Seconds without use after which a model is unloaded; 0 keeps it."""

    idle_check_interval_s: Annotated[
        float,
        Field(
            validation_alias="MODEL_IDLE_CHECK_INTERVAL_SECONDS",
            gt=0,
            allow_inf_nan=False,
        ),
    ] = 60.0
    """Seconds between two checks for idle models."""

    amp_on_cuda: Annotated[bool, Field(validation_alias="TTS_ENABLE_AMP_ON_CUDA")] = False
    """Mixed precision for Chatterbox on CUDA."""

    tf32: Annotated[bool, Field(validation_alias="TTS_TF32")] = False
    """`true`: codec and vocoder round to 10 bits before they multiply on CUDA, which is faster.

    The difference was tested with a small codec, not with trained weights.
    """

    device: Annotated[
        str,
        Field(validation_alias="TTS_DEVICE", pattern=r"^(auto|cpu|mps|cuda(:\d{1,2})?)$"),
    ] = "auto"
    """Where models run: `auto` (the best there is), `cpu`, `mps`, `cuda`, or one card: `cuda:1`.

    That is the second of the cards that `CUDA_VISIBLE_DEVICES` leaves; the studio doesn't see
    the others.
    """

    chatterbox_model: Annotated[str | None, Field(validation_alias="CHATTERBOX_MODEL")] = None
    """Chatterbox's weights, for the model whose files they hold.

    A name on the hub (`owner/model`, `owner/model@revision`) or a local folder. Not set: the
    package's own weights.
    """

    chatterbox_turbo_model: Annotated[
        str | None, Field(validation_alias="CHATTERBOX_TURBO_MODEL")
    ] = None
    """The same for the turbo model alone."""

    chatterbox_multilingual_model: Annotated[
        str | None, Field(validation_alias="CHATTERBOX_MULTILINGUAL_MODEL")
    ] = None
    """The same for the multilingual model alone."""

    package_ends: Annotated[bool, Field(validation_alias="CHATTERBOX_PACKAGE_ENDS")] = False
    """`true`: Chatterbox Multilingual ends lines by its package's own rule, which may cut them."""

    qwen3_model: Annotated[str | None, Field(validation_alias="QWEN3_TTS_MODEL")] = None
    """Qwen3-TTS's weights: a name on the hub, with or without `@revision`, or a local folder.

    Not set: `Qwen/Qwen3-TTS-12Hz-0.6B-Base`.
    """

    reference_silence_s: Annotated[
        float,
        Field(
            validation_alias="TTS_REFERENCE_SILENCE_SECONDS",
            ge=0,
            le=5,
            allow_inf_nan=False,
        ),
    ] = 0.5
    """Seconds of silence after a sample of Qwen3-TTS, 0 to 5.

    It keeps the sample's last word out of the line.
    """

    batch_slots: Annotated[int | None, Field(validation_alias="TTS_BATCH_SIZE", ge=1, le=64)] = None
    """Lines that a model decodes together, 1 to 64.

    Not set: on CUDA as many as the memory holds, at most 64, and elsewhere one line at a time.
    """

    batch_positions: Annotated[
        int | None, Field(validation_alias="TTS_BATCH_POSITIONS", ge=256, le=8_192)
    ] = None
    """Positions (prompt and frames) of a line's slot, 256 to 8192.

    Not set: with Qwen3-TTS 2048, or 1024 where fewer than 8 lines of those fit.
    """

    batch_max_wait_ms: Annotated[
        float,
        Field(
            validation_alias="TTS_BATCH_MAX_WAIT_MS",
            ge=0,
            le=10_000,
            allow_inf_nan=False,
        ),
    ] = 50.0
    """Milliseconds that an idle engine waits for further lines before it starts the first one.

    Up to 10,000; it never waits with a line that somebody listens to.
    """

    batch_continuous: Annotated[bool, Field(validation_alias="TTS_BATCH_CONTINUOUS")] = True
    """`true`: continuous batching, a slot is refilled while other lines run.

    `false`: all slots finish before the next batch.
    """

    batch_compile: Annotated[bool, Field(validation_alias="TTS_BATCH_COMPILE")] = False
    """`true`: Qwen3-TTS decodes with compiled kernels.

    Needs a C++ compiler, on CUDA Triton and a C compiler.
    """

    batch_fuse: Annotated[bool, Field(validation_alias="TTS_BATCH_FUSE")] = False
    """`true`: on CUDA Qwen3-TTS decodes with fused Triton kernels.

    Takes precedence over `TTS_BATCH_COMPILE`.
    """

    remote_urls: Annotated[
        tuple[AnyHttpUrl, ...],
        BeforeValidator(_listed),
        Field(validation_alias="TTS_REMOTE_URLS"),
    ] = ()
    """Base URLs of speech servers, separated by commas; `/v1` may be left out."""

    remote_model: Annotated[str | None, Field(validation_alias="TTS_REMOTE_MODEL")] = None
    """The model to request from the speech servers; not set: what each has."""

    remote_key: Annotated[
        SecretStr | None,
        AfterValidator(lambda key: key and _sendable(key)),
        Field(validation_alias="TTS_REMOTE_KEY"),
    ] = None
    """The speech servers' key, sent as bearer token; in no message and no log."""

    remote_concurrency: Annotated[
        int, Field(validation_alias="TTS_REMOTE_CONCURRENCY", ge=1, le=64)
    ] = 4
    """Lines in flight on each speech server, 1 to 64."""

    remote_timeout_s: Annotated[
        float,
        Field(validation_alias="TTS_REMOTE_TIMEOUT_SECONDS", gt=0, allow_inf_nan=False),
    ] = 120.0
    """Seconds that one try at a line may take on a speech server."""

    remote_patience_s: Annotated[
        float,
        Field(validation_alias="TTS_REMOTE_PATIENCE_SECONDS", ge=0, allow_inf_nan=False),
    ] = 180.0
    """Seconds that lines wait while no speech server answers, before the render ends."""

    workspace: Annotated[Path, Field(validation_alias="TABLEREAD_WORKSPACE")] = Field(
        default_factory=default_workspace
    )
    """Folder of speakers, projects and renders.

    Not set: `workspace` next to `launch.py`; for a package `Tableread` in the user's home.
    """

    api_key: Annotated[
        SecretStr | None,
        AfterValidator(lambda key: key and _sendable(key)),
        Field(validation_alias="TABLEREAD_API_KEY"),
    ] = None
    """What programs send as bearer key; not set: they need what the page needs."""

    allowed_hosts: Annotated[
        tuple[str, ...],
        BeforeValidator(_listed),
        Field(validation_alias="TABLEREAD_ALLOWED_HOSTS"),
    ] = ()
    """Further host names by which the studio may be reached, separated by commas."""

    visitor_gb: Annotated[
        float,
        Field(
            validation_alias="TABLEREAD_VISITOR_GB",
            ge=0.05,
            le=10_000,
            allow_inf_nan=False,
        ),
    ] = 2.0
    """Gigabytes that each visitor of a shared studio may keep on the disk, from 0.05 on."""

    space_id: Annotated[str | None, Field(validation_alias="SPACE_ID")] = None
    """Set by the platform of a Hugging Face Space: its name."""

    space_hosts: Annotated[
        tuple[str, ...],
        BeforeValidator(_listed),
        Field(validation_alias="SPACE_HOST"),
    ] = ()
    """Set by the platform: the Space's hosts, separated by commas."""

    space_port: Annotated[int, Field(validation_alias="GRADIO_SERVER_PORT", ge=1, le=65535)] = 7860
    """Set by the platform: the port at which the Space is reached."""

    zero_gpu: Annotated[bool, Field(validation_alias="SPACES_ZERO_GPU")] = False
    """Set by the platform: whether the Space's card is lent for seconds at a time."""

    @property
    def is_space(self) -> bool:
        """Whether this runs as a Hugging Face Space."""
        return self.space_id is not None

    def keeps_in(self, storage: Path) -> bool:
        """Whether a Space's storage is there and nobody chose another workspace."""
        chosen = "workspace" in self.model_fields_set
        return self.is_space and not chosen and os.access(storage, os.W_OK)

    @model_validator(mode="before")
    @classmethod
    def _without_blank(cls, given: dict[str, Any]) -> dict[str, Any]:
        """A variable that is empty or blank counts as not set."""
        return {name: value for name, value in given.items() if str(value).strip()}

    @classmethod
    def from_environment(cls) -> Settings:
        """Read the variables.

        Raises:
            SettingError: Names every variable whose value can't be used, and why.
        """
        try:
            return cls()
        except ValidationError as error:
            raise SettingError(" ".join(_sentence(detail) for detail in error.errors())) from None


def _sentence(detail: Mapping[str, object]) -> str:
    place = detail["loc"]
    assert isinstance(place, tuple)
    message = str(detail["msg"]).removeprefix("Value error, ")
    if not message[:2].isupper():
        message = message[0].lower() + message[1:]
    value = "" if place[0] in _SECRETS else f"={detail['input']}"
    return f"{place[0]}{value} can't be used: {message}."
