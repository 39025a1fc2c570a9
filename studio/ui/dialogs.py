"""Dialogs over the page: keys, a conflict of two edits, and the question before a deletion."""

from __future__ import annotations

_KEYS = (
    ("Space", "Play the line, made first where it is missing"),
    ("Shift Space", "Play on from the line"),
    ("Ctrl Enter", "Read the scene from its beginning"),
    ("Ctrl Shift Enter", "Make what is missing, silently"),
    ("R", "Make the line again with another seed"),
    ("L", "Lock or unlock"),
    ("↑ ↓", "Previous or next line; with Shift, mark"),
    ("← →", "Move the play-head by a line"),
    ("Enter", "Write in the line; there, cut it at the caret"),
    ("Backspace", "At the start of a line: join it to the one before"),
    ("Esc", "Leave the text"),
    ("Shift Enter", "Add a line"),
    ("P", "Add a pause"),
    ("Alt ↑ ↓", "Move the marked lines"),
    ("Ctrl D", "Duplicate"),
    ("Delete", "Delete"),
    ("Ctrl A", "Mark all lines"),
    ("S", "Mark all lines of the same speaker"),
    ("G", "Go to lines of a state or a speaker"),
    ("N", "The next of them; with Shift, the one before"),
    ("Ctrl 1 … 9", "Give the marked lines to that speaker of the cast; or Alt and the number"),
    ("Ctrl C X V", "Copy, cut, paste lines, as a piece of script"),
    ("Ctrl Z Y", "Undo, redo"),
    ("Ctrl F", "Find and replace"),
    ("F8", "Pronunciations: say the marked word otherwise"),
    ("Ctrl E", "Download the sound"),
    ("Ctrl S", "Save at once what is on its way"),
    ("?", "Show this list"),
)


def _key_row(keys: str, meaning: str) -> str:
    shown = " ".join(f"<kbd>{key}</kbd>" for key in keys.split())
    return f"<dt>{shown}</dt><dd>{meaning}</dd>"


_KEY_LIST = "".join(_key_row(keys, meaning) for keys, meaning in _KEYS)

DIALOGS = f"""
<dialog id="keys" class="wide" aria-labelledby="keys-title">
  <h2 id="keys-title">Keyboard</h2>
  <dl class="facts keys-list">{_KEY_LIST}</dl>
  <form method="dialog"><button class="button">Close</button></form>
</dialog>
<dialog id="again-confirm" aria-labelledby="again-confirm-title">
  <h2 id="again-confirm-title"></h2>
  <p>Each gets a further take with another seed, which is then heard. The takes there are stay, and
    one undo brings them all back.</p>
  <form method="dialog" class="panel-row">
    <button class="button" value="keep">Leave them</button>
    <button class="button primary" value="make">Make them again</button>
  </form>
</dialog>
<dialog id="bring-confirm" aria-labelledby="bring-confirm-title">
  <h2 id="bring-confirm-title" dir="auto"></h2>
  <p id="bring-confirm-text"></p>
  <form method="dialog" class="panel-row">
    <button class="button" value="cancel">Cancel</button>
    <button class="button" value="project">As a new project</button>
    <button class="button primary" value="here">Insert here</button>
  </form>
</dialog>
<dialog id="conflicts" class="wide" aria-labelledby="conflicts-title">
  <h2 id="conflicts-title" tabindex="-1">Changed in two places</h2>
  <p class="soft">Somebody else changed the same thing before your edit arrived. Theirs stands
    until you choose.</p>
  <ul id="conflict-list" class="plain"></ul>
  <button id="conflicts-later" class="button small quiet" type="button">Decide later</button>
</dialog>
<template id="conflict-template">
  <li class="conflict">
    <strong class="conflict-field"></strong>
    <dl class="facts">
      <dt>Mine</dt><dd class="conflict-mine" dir="auto"></dd>
      <dt>Theirs</dt><dd class="conflict-theirs" dir="auto"></dd>
    </dl>
    <div class="panel-row">
      <button class="button small keep-mine" type="button">Keep mine</button>
      <button class="button small keep-theirs" type="button">Keep theirs</button>
    </div>
  </li>
</template>
<dialog id="project-confirm" aria-labelledby="project-confirm-title">
  <h2 id="project-confirm-title"></h2>
  <p>It moves to “Deleted projects”, from where you can restore it for 30 days, or until you free
    that space.</p>
  <form method="dialog" class="panel-row">
    <button class="button" value="keep">Keep</button>
    <button class="button danger" value="delete">Delete</button>
  </form>
</dialog>
<dialog id="engine-confirm" aria-labelledby="engine-confirm-title">
  <h2 id="engine-confirm-title"></h2>
  <p id="engine-confirm-text"></p>
  <form method="dialog" class="panel-row">
    <button class="button" value="cancel">Cancel</button>
    <button id="engine-keep" class="button" value="keep"></button>
    <button id="engine-again" class="button" value="again"></button>
  </form>
</dialog>
<dialog id="space-confirm" aria-labelledby="space-confirm-title">
  <h2 id="space-confirm-title"></h2>
  <p id="space-takes"><strong id="space-takes-size"></strong> Undo still brings their words and
    settings back, without the sound; they can be made again.</p>
  <p id="space-recordings"><strong id="space-recordings-size"></strong> No line plays them; undo
    of what replaced them would find no sound.</p>
  <p id="space-trash"><strong id="space-trash-size"></strong> They can't be restored any more.
    Without this, a deleted project goes by itself after 30 days.</p>
  <form method="dialog" class="panel-row">
    <button class="button" value="keep">Keep</button>
    <button class="button danger" value="free">Free the space</button>
  </form>
</dialog>
<div id="speaker-menu" class="panel menu-list" role="menu" aria-label="Who says it" hidden></div>
<template id="speaker-item-template">
  <button class="menu-item" type="button" role="menuitem" tabindex="-1">
    <span class="swatch" aria-hidden="true"></span>
    <span class="item-name" dir="auto"></span></button>
</template>
<div id="drop-veil" aria-hidden="true" hidden><p>Let go to import it as a new project</p></div>
"""
"""What stands above everything else; each is opened by the script that owns it."""
