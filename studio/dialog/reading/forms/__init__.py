"""One module for each form of text, or for a few alike; each lists its forms in `FORMS`."""
