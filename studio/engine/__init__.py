"""The in-process part that schedules segments on a backend and looks after its life."""
