"""What outlives a process: the state database."""
