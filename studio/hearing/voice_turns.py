"""Whether one person speaks in a recording or two, by the speaker embeddings of its phrases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from studio.audio.clip import Clip
from studio.audio.voice_count import cut_phrases
from studio.quality.voice_drift import unpack_voiceprint

_MIN_PHRASE_S = 1.0  # of less an embedding says little
_MIN_VOICE_S = 1.0
_SAME_VOICE = {"ge2e": 0.75}
"""Cosine above which two recordings are of one speaker, as those of trained voices are."""
_SAME_VOICE_ELSE = 0.31  # by CAM++'s own examples

Embed = Callable[[Clip], str | None]
"""A recording's voiceprint, as `VoiceEmbedder.embed`."""


def measure_voices(clip: Clip, embed: Embed) -> tuple[float, ...] | None:
    """For how many seconds each voice of a recording speaks, the longest first.

    Args:
        clip: Of which phrases of a second and more are compared.
        embed: Called for each of them.

    Returns:
        One or two lengths; None where nothing can be embedded, or too little is said.
    """
    prints = [(part.duration_s, embed(part)) for part in cut_phrases(clip, _MIN_PHRASE_S)]
    unpacked = [(length_s, unpack_voiceprint(one)) for length_s, one in prints]
    known = [(length_s, one) for length_s, one in unpacked if one is not None]
    if not known:
        return None
    lengths_s = np.array([length_s for length_s, _ in known])
    directions = np.stack([direction for _, direction in known])
    likeness = directions @ directions.T
    # The two that are least alike stand for two voices; each other phrase goes to the nearer one.
    one, other = np.unravel_index(int(likeness.argmin()), likeness.shape)
    is_other = likeness[other] > likeness[one]
    sums_s = (float(lengths_s[~is_other].sum()), float(lengths_s[is_other].sum()))
    if min(sums_s) < _MIN_VOICE_S:
        return (float(lengths_s.sum()),)
    middles = [directions[group].mean(axis=0) for group in (~is_other, is_other)]
    apart = float(middles[0] @ middles[1]) / float(np.prod(np.linalg.norm(middles, axis=1)))
    model = next(one for _, one in prints if one is not None).partition(":")[0]
    if apart >= _SAME_VOICE.get(model, _SAME_VOICE_ELSE):
        return (float(lengths_s.sum()),)
    return max(sums_s), min(sums_s)
