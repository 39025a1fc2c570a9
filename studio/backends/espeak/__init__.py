"""The draft voice: eSpeak NG in worker processes."""
