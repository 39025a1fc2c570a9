"""What the studio hears in its takes: words, their times, and where they differ from the text."""
