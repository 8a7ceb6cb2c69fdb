"""What bounds results on their way to a model: large content is stored, long texts are cut; and reading on."""
