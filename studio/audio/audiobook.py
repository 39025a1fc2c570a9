"""What audiobook shops ask of a recording's levels."""

from __future__ import annotations

from studio.audio.loudness import Loudness

_RMS_DB = (-23.0, -18.0)
_PEAK_DB = -3.0
_NOISE_DB = -60.0


def acx_faults(loudness: Loudness) -> tuple[str, ...]:
    """Which of ACX's three limits sound breaks, each with the remedy; none where it passes.

    Source: ACX audio submission requirements: RMS from -23 to -18 dB, peaks at most -3 dB, noise
    floor at most -60 dB.
    """
    faults = []
    if not _RMS_DB[0] <= loudness.rms_db <= _RMS_DB[1]:
        faults.append(
            f"Its level is {loudness.rms_db:.1f} dB RMS, and {_RMS_DB[0]:.0f} to {_RMS_DB[1]:.0f}"
            " are asked for: shorten long pauses, or even out the voices."
        )
    if loudness.peak_db > _PEAK_DB:
        faults.append(
            f"Its peak is {loudness.peak_db:.1f} dB, and {_PEAK_DB:.0f} is the most: save it as WAV"
            " or FLAC."
        )
    if loudness.noise_db > _NOISE_DB:
        faults.append(
            f"Its quietest half second is {loudness.noise_db:.1f} dB, and {_NOISE_DB:.0f} is the"
            " most: put a pause between the lines, or change the voices' noisy samples."
        )
    return tuple(faults)
