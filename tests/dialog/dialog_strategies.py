"""Hypothesis strategies for dialogs that are hard to write."""

from hypothesis import strategies as st

from studio.dialog.model import (
    MAX_PAUSE_S,
    Audio,
    Dialog,
    Silence,
    Speech,
    Unspoken,
    UnspokenKind,
    clean_name,
    paragraph,
)
from studio.dialog.tags import cut_pauses
from studio.errors import NameRejected, ScriptError

TRICKY_NAMES = [
    "Anna", "Dr. Ames", "Dr: Ames", "10:30", "laugh", "Clear Throat", "pause", "(pause)", "audio",
    "audio: x", "# Ben", "// Ben", "\\Ben", "**Ben**", "Mrs. Y", "no. one", "A, B", "“Q”", "ليلى",
    "בן", "晴：子", "👩‍🚀 Zoë", "ß", "SS", "a" * 60, "one two three four five six", ":", "-", "<b>",
]  # fmt: skip
TRICKY_TEXTS = [
    "", "# not a comment", "// nor this", "\\literal", "[laugh] well", "[Ben] hi", "Ben: hi",
    ": x", "：x", "[pause:500ms] hm [pause]", "(pause 1.5s)", '<break time="1s"/>',
    "[audio: x.wav]", "| a | b ]", "]", "[", "]: x", "**Ben:** hi", "http://x", "10:30 we leave",
    "\u200bzero\u200dw", "\u202eright to left", "😀", "…", "{", '{"type": "speech"}',
]  # fmt: skip
TRICKY_UNSPOKEN = [
    "# a", "## b", "> c", "[[pause]]", "pause", "audio: x.wav", "voice | seed:7", "note: x", "]",
    "[", "a]]b", "INT. ROOM - DAY", "INT. A/*b", ".x", "!x", "!!", "<", "> x <", "=", "-->",
    "WEBVTT", "*no* _marks_", "Ben: hi", "/* x */", "ANNA",
]  # fmt: skip
TRICKY_PATHS = [
    "bell.wav", "a b/c.wav", "take [2].wav", 'q"uote.wav', "a|b", " x ", "a\u2028b", "[", '"',
]  # fmt: skip

_characters = st.characters(exclude_categories=["Cs"])


def _is_name(text: str) -> bool:
    try:
        clean_name(text)
    except NameRejected:
        return False
    return True


def _is_text(text: str) -> bool:
    try:
        cut_pauses(text)
    except ScriptError:
        return False
    return True


names = st.one_of(
    st.sampled_from(TRICKY_NAMES),
    st.text(_characters, min_size=1, max_size=40).filter(_is_name),
    st.text("AbC.:!#/\\()<>*é ", min_size=1, max_size=12).filter(_is_name),
).map(clean_name)

texts = (
    st.one_of(
        st.sampled_from(TRICKY_TEXTS),
        st.text(_characters, max_size=60),
        st.lists(st.sampled_from([*TRICKY_TEXTS, "word", "Yes."]), max_size=5).map(" ".join),
    )
    .map(lambda text: " ".join(text.split()))
    .filter(_is_text)
)

param_values = st.one_of(
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(_characters, max_size=10),
    st.sampled_from(["true", "1.2", "calm", "[", "|", '"', "nan"]),
)
params = st.dictionaries(
    st.sampled_from(["speed", "exaggeration", "top_p", "style", "x-1"]), param_values, max_size=3
)
speeches = st.builds(
    Speech,
    speaker=names,
    text=texts,
    language=st.none() | st.sampled_from(["de", "en-GB", "zh-Hant-TW"]),
    seed=st.none() | st.integers(0, 2**63 - 1),
    params=params,
)
silences = st.builds(Silence, st.floats(0, MAX_PAUSE_S))
audios = st.builds(
    Audio,
    st.one_of(
        st.sampled_from(TRICKY_PATHS),
        st.text(_characters, min_size=1, max_size=20).filter(
            lambda path: path.strip() != "" and "\0" not in path
        ),
    ),
).filter(lambda audio: audio.path.strip() != "")

unspoken = st.builds(
    Unspoken,
    texts.map(paragraph).filter(bool) | st.sampled_from(TRICKY_UNSPOKEN),
    st.sampled_from(UnspokenKind),
)

dialogs = (
    st.lists(st.one_of(speeches, speeches, silences, audios, unspoken), min_size=1, max_size=8)
    .filter(lambda lines: not all(isinstance(line, Unspoken) for line in lines))
    .map(lambda lines: Dialog(tuple(lines)))
)


SCRIPT_PIECES = [
    "Anna: ", "Ben:", "[Cleo] ", "[Cleo | lang:de | seed:4]", "[Dr: A |] ", "\n", "\n\n", "# c",
    "//", "\\", "[pause]", "[pause:1s]", "(pause 2s)", '<break time="1s"/>', "[audio: x.wav]",
    "[laugh] ", "text ", "more, words. ", ":", "：", "[", "]", "|", "<", ">", "(", ")", "\u200b",
    "**", '"', "\t", "[pause:abc]", "[Anna | speed:1.2]", "\r\n", "\u2028", "é", "10:30 ", "{", "}",
]  # fmt: skip
scripts = st.one_of(
    st.text(max_size=200), st.lists(st.sampled_from(SCRIPT_PIECES), max_size=25).map("".join)
)
