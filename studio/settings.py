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

_HOME = Path(__file__).resolve().parent.parent


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
    """The studio's configuration; each field names its variable, unit and range."""

    # Lists stand in the environment with commas, not as JSON, so nothing is decoded beforehand.
    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        case_sensitive=True,
        enable_decoding=False,
        use_attribute_docstrings=True,
    )

    backend: Annotated[str, Field(validation_alias="TTS_BACKEND")] = "auto"
    """Who speaks; `auto` is the best backend that can run now."""

    max_concurrency: Annotated[int, Field(validation_alias="TTS_MAX_CONCURRENCY", ge=1, le=256)] = 3
    """Segments in flight at once on a backend that has no slots of its own."""

    eviction_enabled: Annotated[bool, Field(validation_alias="MODEL_EVICTION_ENABLED")] = True
    """Whether idle models are unloaded."""

    idle_timeout_s: Annotated[
        float,
        Field(validation_alias="MODEL_IDLE_TIMEOUT_SECONDS", ge=0, allow_inf_nan=False),
    ] = 900.0
    """Seconds without use after which a model is unloaded; 0 means never."""

    idle_check_interval_s: Annotated[
        float,
        Field(
            validation_alias="MODEL_IDLE_CHECK_INTERVAL_SECONDS",
            gt=0,
            allow_inf_nan=False,
        ),
    ] = 60.0
    """Seconds between two looks for idle models."""

    amp_on_cuda: Annotated[bool, Field(validation_alias="TTS_ENABLE_AMP_ON_CUDA")] = False
    """Whether models run in mixed precision on CUDA."""

    tf32: Annotated[bool, Field(validation_alias="TTS_TF32")] = False
    """Whether codec and vocoder round to 10 bits before they multiply on CUDA, which is faster."""

    device: Annotated[
        str,
        Field(validation_alias="TTS_DEVICE", pattern=r"^(auto|cpu|mps|cuda(:\d{1,2})?)$"),
    ] = "auto"
    """Where models run: auto (the best there is), cpu, mps, cuda, or one card such as cuda:1."""

    chatterbox_model: Annotated[str | None, Field(validation_alias="CHATTERBOX_MODEL")] = None
    """Hub name or local folder of Chatterbox's weights; for the model whose files are there."""

    chatterbox_turbo_model: Annotated[
        str | None, Field(validation_alias="CHATTERBOX_TURBO_MODEL")
    ] = None
    """The same for the turbo model alone."""

    chatterbox_multilingual_model: Annotated[
        str | None, Field(validation_alias="CHATTERBOX_MULTILINGUAL_MODEL")
    ] = None
    """The same for the multilingual model alone."""

    package_ends: Annotated[bool, Field(validation_alias="CHATTERBOX_PACKAGE_ENDS")] = False
    """Whether Chatterbox Multilingual ends lines by its package's rule, which may cut them."""

    qwen3_model: Annotated[str | None, Field(validation_alias="QWEN3_TTS_MODEL")] = None
    """Hub name or local folder of Qwen3-TTS's weights."""

    reference_silence_s: Annotated[
        float,
        Field(
            validation_alias="TTS_REFERENCE_SILENCE_SECONDS",
            ge=0,
            le=5,
            allow_inf_nan=False,
        ),
    ] = 0.5
    """Seconds of silence after a sample, which keep its last word out of the line."""

    batch_slots: Annotated[int | None, Field(validation_alias="TTS_BATCH_SIZE", ge=1, le=64)] = None
    """Lines decoded together; None for as many as the memory holds on CUDA, else one at a time."""

    batch_positions: Annotated[
        int | None, Field(validation_alias="TTS_BATCH_POSITIONS", ge=256, le=8_192)
    ] = None
    """Prompt and frames of a line decoded with others; None for what a long one needs."""

    batch_max_wait_ms: Annotated[
        float,
        Field(
            validation_alias="TTS_BATCH_MAX_WAIT_MS",
            ge=0,
            le=10_000,
            allow_inf_nan=False,
        ),
    ] = 50.0
    """How long a first line waits for others before an idle engine begins."""

    batch_continuous: Annotated[bool, Field(validation_alias="TTS_BATCH_CONTINUOUS")] = True
    """Whether a slot is refilled while other lines run, or only when all are done."""

    batch_compile: Annotated[bool, Field(validation_alias="TTS_BATCH_COMPILE")] = False
    """Whether the frames of lines decoded together are made of compiled parts."""

    batch_fuse: Annotated[bool, Field(validation_alias="TTS_BATCH_FUSE")] = False
    """Whether they are made of fused kernels instead, where those can run."""

    remote_urls: Annotated[
        tuple[AnyHttpUrl, ...],
        BeforeValidator(_listed),
        Field(validation_alias="TTS_REMOTE_URLS"),
    ] = ()
    """Base URLs of speech servers, with commas between them."""

    remote_model: Annotated[str | None, Field(validation_alias="TTS_REMOTE_MODEL")] = None
    """The model to ask the speech servers for; None for what each has."""

    remote_key: Annotated[
        SecretStr | None,
        AfterValidator(lambda key: key and _sendable(key)),
        Field(validation_alias="TTS_REMOTE_KEY"),
    ] = None
    """The speech servers' key."""

    remote_concurrency: Annotated[
        int, Field(validation_alias="TTS_REMOTE_CONCURRENCY", ge=1, le=64)
    ] = 4
    """Lines in flight on each speech server."""

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

    workspace: Annotated[Path, Field(validation_alias="TABLEREAD_WORKSPACE")] = _HOME / "workspace"
    """Folder of speakers and renders."""

    api_key: Annotated[
        SecretStr | None,
        AfterValidator(lambda key: key and _sendable(key)),
        Field(validation_alias="TABLEREAD_API_KEY"),
    ] = None
    """What programs send as a Bearer key; None asks for what the page asks."""

    allowed_hosts: Annotated[
        tuple[str, ...],
        BeforeValidator(_listed),
        Field(validation_alias="TABLEREAD_ALLOWED_HOSTS"),
    ] = ()
    """Host names by which the studio may be reached beside its own, divided by commas."""

    visitor_gb: Annotated[
        float,
        Field(
            validation_alias="TABLEREAD_VISITOR_GB",
            ge=0.05,
            le=10_000,
            allow_inf_nan=False,
        ),
    ] = 2.0
    """Gigabytes that each visitor of a shared studio may keep on the disk."""

    space_id: Annotated[str | None, Field(validation_alias="SPACE_ID")] = None
    """The Hugging Face Space this runs as; set by the platform."""

    space_hosts: Annotated[
        tuple[str, ...],
        BeforeValidator(_listed),
        Field(validation_alias="SPACE_HOST"),
    ] = ()
    """That Space's host name, and a domain of its owner's beside it; set by the platform."""

    space_port: Annotated[int, Field(validation_alias="GRADIO_SERVER_PORT", ge=1, le=65535)] = 7860
    """The port a Space is asked at; set by the platform."""

    zero_gpu: Annotated[bool, Field(validation_alias="SPACES_ZERO_GPU")] = False
    """Whether the Space's card is lent for seconds at a time; set by the platform."""

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
