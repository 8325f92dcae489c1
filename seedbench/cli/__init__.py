"""The command line: each module parses, calls, prints."""
