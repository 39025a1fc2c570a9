"""What the studio recognises in sound: when each word is said, which words, and patches by them."""
