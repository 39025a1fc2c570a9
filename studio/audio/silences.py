"""Where a clip is silent, and the clip without that."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from studio.audio.clip import Clip, Samples
from studio.audio.measure import FRAME_S, speech_frames

Span = tuple[int, int]


def silences(clip: Clip, *, min_s: float) -> tuple[Span, ...]:
    """Stretches of a clip that hold no speech, its ends included.

    Args:
        clip: An empty one has none; one without any speech is a single stretch.
        min_s: Shorter ones are left out.

    Returns:
        First sample and the one after the last, in order.
    """
    speech = speech_frames(clip)
    frame_samples = max(1, round(FRAME_S * clip.rate_hz))
    edges = np.flatnonzero(np.diff(np.concatenate([[True], speech, [True]]).astype(np.int8)))
    spans = zip(edges[::2] * frame_samples, edges[1::2] * frame_samples, strict=True)
    # A last piece shorter than a frame belongs to the silence before it.
    ends = ((int(a), len(clip) if b >= len(speech) * frame_samples else int(b)) for a, b in spans)
    return tuple((a, b) for a, b in ends if b - a >= min_s * clip.rate_hz)


def without_silences(clip: Clip, *, min_s: float, keep_s: float, edge_s: float) -> Clip:
    """Cut long silences short.

    Args:
        clip: What is cut; one without any speech is given back as it is.
        min_s: Silences inside the clip shorter than this stay as they are.
        keep_s: What remains of a longer one, half at each side.
        edge_s: What remains before the first speech and behind the last.
    """
    if not speech_frames(clip).any():
        return clip
    parts = list(_kept(clip, min_s=min_s, keep_s=keep_s, edge_s=edge_s))
    return Clip(_joined(parts, round(0.005 * clip.rate_hz)), clip.rate_hz)


def _kept(clip: Clip, *, min_s: float, keep_s: float, edge_s: float) -> Iterator[Samples]:
    edge, half = round(edge_s * clip.rate_hz), round(keep_s * clip.rate_hz / 2)
    begin = 0
    for first, after in silences(clip, min_s=0):
        if first == 0:
            begin = max(0, after - edge)
        elif after == len(clip):
            yield clip.samples[begin : min(len(clip), first + edge)]
            return
        elif after - first >= min_s * clip.rate_hz:
            yield clip.samples[begin : first + half]
            begin = after - half
    yield clip.samples[begin:]


def _joined(parts: list[Samples], fade: int) -> Samples:
    """Lay parts end to end; each join is faded over `fade` samples, so that none clicks."""
    ramp = np.linspace(0.0, 1.0, fade, dtype=np.float32)
    parts = [part.copy() for part in parts]
    for before, after in pairwise(parts):
        before[-fade:] *= ramp[::-1][-len(before) :]
        after[:fade] *= ramp[: len(after)]
    return np.concatenate(parts)
