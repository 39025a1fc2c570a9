"""File formats of dialogs: scripts, screenplays, subtitles, tables and items.

`dialog_file` reads and writes them. Scripts and items have their own modules in
`studio.dialog`; the modules here convert the other formats to the same lines.
"""
