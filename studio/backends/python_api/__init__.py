"""The engine for other programs: a model, one call for many lines, and an async scheduler."""
