"""Every environment variable, once, typed. Read by the composition root only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from studio.errors import SettingError

_HOME = Path(__file__).resolve().parent.parent


def _variable(name: str) -> AliasChoices:
    return AliasChoices(name)


class Settings(BaseModel):
    """The studio's configuration; each field names its variable, unit and range."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    backend: Annotated[str, Field(validation_alias=_variable("TTS_BACKEND"))] = "auto"
    """Who speaks; `auto` is the best backend that can run now."""

    max_concurrency: Annotated[
        int, Field(validation_alias=_variable("TTS_MAX_CONCURRENCY"), ge=1, le=256)
    ] = 3
    """Segments in flight at once on a backend that has no slots of its own."""

    eviction_enabled: Annotated[
        bool, Field(validation_alias=_variable("MODEL_EVICTION_ENABLED"))
    ] = True
    """Whether idle models are unloaded."""

    idle_timeout_s: Annotated[
        float,
        Field(validation_alias=_variable("MODEL_IDLE_TIMEOUT_SECONDS"), ge=0, allow_inf_nan=False),
    ] = 900.0
    """Seconds without use after which a model is unloaded; 0 means never."""

    idle_check_interval_s: Annotated[
        float,
        Field(
            validation_alias=_variable("MODEL_IDLE_CHECK_INTERVAL_SECONDS"),
            gt=0,
            allow_inf_nan=False,
        ),
    ] = 60.0
    """Seconds between two looks for idle models."""

    amp_on_cuda: Annotated[bool, Field(validation_alias=_variable("TTS_ENABLE_AMP_ON_CUDA"))] = (
        False
    )
    """Whether models run in mixed precision on CUDA."""

    chatterbox_model: Annotated[
        str | None, Field(validation_alias=_variable("CHATTERBOX_MODEL"))
    ] = None
    """Hub name or local folder of Chatterbox's weights."""

    qwen3_model: Annotated[str | None, Field(validation_alias=_variable("QWEN3_TTS_MODEL"))] = None
    """Hub name or local folder of Qwen3-TTS's weights."""

    reference_silence_s: Annotated[
        float,
        Field(
            validation_alias=_variable("TTS_REFERENCE_SILENCE_SECONDS"),
            ge=0,
            le=5,
            allow_inf_nan=False,
        ),
    ] = 0.5
    """Seconds of silence after a sample, which keep its last word out of the line."""

    batch_slots: Annotated[
        int | None, Field(validation_alias=_variable("TTS_BATCH_SIZE"), ge=1, le=64)
    ] = None
    """Lines that a batched backend decodes together; None for as many as the memory holds."""

    batch_positions: Annotated[
        int | None, Field(validation_alias=_variable("TTS_BATCH_POSITIONS"), ge=256, le=8_192)
    ] = None
    """Prompt and frames that a batched backend keeps of a line; None for what a long one needs."""

    batch_max_wait_ms: Annotated[
        float,
        Field(
            validation_alias=_variable("TTS_BATCH_MAX_WAIT_MS"),
            ge=0,
            le=10_000,
            allow_inf_nan=False,
        ),
    ] = 50.0
    """How long a first line waits for others before a batched backend begins."""

    batch_continuous: Annotated[bool, Field(validation_alias=_variable("TTS_BATCH_CONTINUOUS"))] = (
        True
    )
    """Whether a slot is refilled while other lines run, or only when all are done."""

    workspace: Annotated[Path, Field(validation_alias=_variable("TABLEREAD_WORKSPACE"))] = (
        _HOME / "workspace"
    )
    """Folder of speakers and renders."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the variables; an empty one counts as not set.

        Raises:
            SettingError: Names every variable whose value can't be used, and why.
        """
        given = {name: value for name, value in environment.items() if value.strip()}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise SettingError(" ".join(_sentence(detail) for detail in error.errors())) from None


def _sentence(detail: Mapping[str, object]) -> str:
    place = detail["loc"]
    assert isinstance(place, tuple)
    message = str(detail["msg"])
    return f"{place[0]}={detail['input']} can't be used: {message[0].lower()}{message[1:]}."
