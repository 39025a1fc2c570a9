"""Reads text from elsewhere: a lexer of rows, and forms that compete for what the text is."""
