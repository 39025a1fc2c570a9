"""From an error to what the page says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from studio import errors


@dataclass(frozen=True, slots=True)
class Message:
    """What a person reads: a short title and a text that names the remedy; plain, never HTML."""

    kind: Literal["done", "refused", "fault"]
    title: str
    text: str


_TITLES: dict[type[errors.StudioError], str] = {
    errors.SettingError: "A setting can't be used",
    errors.ScriptError: "The script can't be read",
    errors.AudioRejected: "This recording can't be opened",
    errors.SampleRejected: "This recording can't serve as a voice",
    errors.NameRejected: "This name can't be used",
    errors.NotFound: "It isn't there any more",
    errors.SpeakerExists: "There is a voice of this name",
    errors.ModelInUse: "The model is speaking",
    errors.EngineBusy: "Too much is waiting already",
    errors.LimitReached: "That is all for now",
    errors.NotAllowed: "Only for the owner",
    errors.ModelUnavailable: "The model can't be used",
    errors.OutOfMemory: "The device ran out of memory",
    errors.SpeechFailed: "A line couldn't be spoken",
    errors.SetupFailed: "The set-up failed",
    errors.StorageFailed: "The workspace can't be used",
    errors.Cancelled: "Cancelled",
    errors.BadInput: "This can't be used",
    errors.EditConflict: "It was changed elsewhere",
    errors.Conflict: "Not now",
    errors.StudioError: "Something went wrong",
}

_FAULTS = (
    errors.ModelUnavailable,
    errors.SetupFailed,
    errors.SpeechFailed,
    errors.StorageFailed,
)


def message_for(error: errors.StudioError) -> Message:
    """Translate an error; its own text already names the place and the remedy."""
    title = next(_TITLES[kind] for kind in type(error).__mro__ if kind in _TITLES)
    return Message("fault" if isinstance(error, _FAULTS) else "refused", title, str(error))
