"""Things that act: the tiny embedded model, Hugging Face models, OpenAI-compatible servers, scripted ones."""
