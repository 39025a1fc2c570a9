"""The form by which a scene's sound is saved: file, level, voices; then how far it is."""

from __future__ import annotations

from studio.audio.mastering import MAX_LUFS, MIN_LUFS

_FORMATS = (
    ("wav", "WAV"),
    ("flac", "FLAC"),
    ("mp3", "MP3"),
    ("zip", "ZIP, line by line"),
    ("tracks", "ZIP, a track for each speaker"),
)
_LEVELS = (
    ("rendered", "As rendered"),
    ("podcast", "Podcast, −16 LUFS"),
    ("audiobook", "Audiobook (ACX), −20 dB RMS"),
    ("broadcast", "Broadcast, −23 LUFS"),
    ("other", "Another level"),
)


def _options(choices: tuple[tuple[str, str], ...]) -> str:
    return "".join(f'<option value="{value}">{label}</option>' for value, label in choices)


SOUND_FORM = f"""
<form id="sound-form" class="panel sound-form" aria-labelledby="sound-title" hidden>
  <h3 id="sound-title">Save the sound</h3>
  <label>File <select id="sound-format">{_options(_FORMATS)}</select></label>
  <label>Loudness <select id="sound-loudness">{_options(_LEVELS)}</select></label>
  <label id="sound-lufs-part" hidden>LUFS, −{-MIN_LUFS:.0f} to −{-MAX_LUFS:.0f}
    <input id="sound-lufs" type="number" min="{MIN_LUFS:.0f}" max="{MAX_LUFS:.0f}" step="0.1"
      value="-18" required disabled></label>
  <label class="sound-check"><input id="sound-even" type="checkbox"> Even out the voices</label>
  <progress id="sound-share" max="1" value="0" aria-label="How much of the file is made"
    hidden></progress>
  <p id="sound-result" class="soft" role="status"></p>
  <div class="panel-row">
    <button id="sound-save" class="button primary" type="submit">Save</button>
    <button id="sound-cancel" class="button" type="button" hidden>Cancel</button>
  </div>
</form>
"""
"""exports.js has the file made and shows its way."""
