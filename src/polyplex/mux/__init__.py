"""Sans-I/O multiplexing: public names and URIs, routes, merged lists and their cursors, rewriting of results."""
