"""What bounds results on their way to a model: content that is stored and referred to, texts that are cut, reading on."""
