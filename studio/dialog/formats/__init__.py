"""Dialogs in the files people have: scripts, screenplays, subtitles, tables and items.

`importing` reads them, `exporting` writes them. Scripts and items have their own modules in
`studio.dialog`; what is here brings the other formats to the same lines.
"""
