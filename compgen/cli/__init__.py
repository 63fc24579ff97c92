"""The command line: options and help from pydantic models, calls of the verbs, what is printed."""
