"""``tiny``: a Qwen2-architecture language model of about half a million parameters, made by this project."""
