"""The remote backend: OpenAI's speech API on one or several servers, vLLM-Omni's among them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.base import Capabilities, Conditioning, LoadProgress, Preset, SpeechRequest
from studio.backends.options import BackendOptions
from studio.backends.qwen3.checkpoint import speaker_label, strip_speakable
from studio.backends.remote.discovery import RemoteVoice, ServerCapabilities, remote_voice
from studio.backends.remote.speech_request import MAX_CHARS, PARAMS, Address, RemoteLine
from studio.errors import ModelUnavailable, SampleRejected, SpeechFailed
from studio.voices.speaker import Voice

if TYPE_CHECKING:
    from studio.backends.remote.loop_bridge import LoopBridge

_MAX_SEED = 2**31


class RemoteBackend:
    """Speech servers as a backend, which asks them what they can do when it loads.

    It shares lines out among the servers, each of which takes a bounded number at once. It asks for
    each line with a seed, so that a second try, on another server too, goes on where the first one
    broke off.
    """

    name = "remote"
    title = "Speech server"

    def __init__(self, options: BackendOptions) -> None:
        self._options = options.remote
        self._addresses = tuple(Address.read(url) for url in self._options.urls)
        self._bridge: LoopBridge | None = None
        self._known: tuple[ServerCapabilities, ...] = ()

    @property
    def revision(self) -> str:
        """The servers' models; known once the servers were asked."""
        self._look()
        return f"speech API, {self._models() or self._options.model or 'not asked yet'}"

    @property
    def capabilities(self) -> Capabilities:
        """All servers' abilities together; before they were asked, the most that servers can."""
        self._look()
        known = self._known
        voices = dict.fromkeys(voice for can in known for voice in can.presets)
        return Capabilities(
            sample_rate_hz=STUDIO_RATE_HZ,
            max_chars=MAX_CHARS,
            cloning=not known or any(can.clones for can in known),
            builtin_voice=not known or bool(voices) or any(can.speaks_unasked for can in known),
            presets=tuple(Preset(voice, speaker_label(voice)) for voice in voices),
            described_voices=not known or any(map(_describes, known)),
            instructions=bool(known) and any(can.takes_instructions for can in known),
            languages=_common_languages(known),
            params=PARAMS,
            streaming=True,
            slots=max(1, len(self._addresses) * self._options.concurrency),
        )

    def unavailable(self) -> str | None:
        """Why it can't run: no server is configured. Sends no request."""
        if self._addresses:
            return None
        return (
            "No speech server is named. Set TTS_REMOTE_URLS to the address of one, such as "
            "http://127.0.0.1:8091/v1, or to several with commas between them."
        )

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Ask the servers what they can do.

        Raises:
            ModelUnavailable: No server is named, or none can be used; says why.
        """
        if self._bridge is not None:
            return
        reason = self.unavailable()
        if reason is not None:
            raise ModelUnavailable(reason)

        # An HTTP client takes as long to import as all the rest of a start.
        from studio.backends.remote.loop_bridge import LoopBridge

        names = ", ".join(address.display_name for address in self._addresses)
        progress(LoadProgress(f"Asking {names} for models and voices", 0.0))
        self._bridge = LoopBridge(self._addresses, self._options)
        self._look()
        ready = ", ".join(self._bridge.pool.names)
        progress(LoadProgress(f"{self._models()} is ready on {ready}", 1.0))

    def unload(self) -> None:
        """Close all connections. Safe when not loaded."""
        self._look()
        bridge, self._bridge = self._bridge, None
        if bridge is not None:
            bridge.close()

    def condition(self, voice: Voice) -> Conditioning:
        """Get a voice ready to be sent: nothing is computed here.

        Raises:
            SampleRejected: No server can make such a voice, or the sample is too long.
        """
        made = remote_voice(voice)
        refusals = [can.refusal(made) for can in self._require_bridge().pool.abilities]
        first = next(iter(refusals), None)
        if first is not None and all(refusals):
            raise SampleRejected(first)
        return Conditioning(made, made.size_bytes)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment on a server that is free, and on another one where it fails."""
        yield from self._require_bridge().speak(self._line(request), request.cancelled)

    def _line(self, request: SpeechRequest) -> RemoteLine:
        voice = request.conditioning.payload
        assert isinstance(voice, RemoteVoice), "conditioning of another backend"
        return RemoteLine(
            text=strip_speakable(request.text),
            voice=voice,
            seed=secrets.randbelow(_MAX_SEED) if request.seed is None else request.seed,
            language=self._language(request.language),
            speed=float(request.params.get("speed", 1.0)),
        )

    def _language(self, code: str | None) -> str | None:
        languages = self.capabilities.languages
        if code is None or not languages:
            return code
        if code in languages:
            return code
        short = code.partition("-")[0].lower()
        if short not in languages:
            raise SpeechFailed(
                f"The speech server doesn't know the language “{code}”. Use one of "
                f"{', '.join(sorted(languages))}, or leave the language out."
            )
        return short

    def _require_bridge(self) -> LoopBridge:
        if self._bridge is None:
            raise ModelUnavailable("The speech servers were not asked yet. Load and try again.")
        return self._bridge

    def _models(self) -> str:
        return ", ".join(sorted({can.model or "the model" for can in self._known}))

    def _look(self) -> None:
        """Read what the servers can do by now; some may have answered later than others."""
        bridge = self._bridge
        if bridge is not None:
            self._known = bridge.pool.abilities


def _describes(can: ServerCapabilities) -> bool:
    """Whether a description shapes a voice; what a server says of itself outranks a guess."""
    return can.designs or can.designs_too or (can.traits is None and can.takes_instructions)


def _common_languages(known: tuple[ServerCapabilities, ...]) -> dict[str, str]:
    """Those of every server; none where a server doesn't say."""
    named = [dict(can.languages) for can in known]
    if not named or not all(named):
        return {}
    return {code: name for code, name in named[0].items() if all(code in one for one in named)}
