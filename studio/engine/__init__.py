"""The inference engine: schedules segments on backends, and loads and unloads their models."""
