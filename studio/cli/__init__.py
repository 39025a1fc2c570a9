"""The command line behind `launch.py`, once the environment exists."""
