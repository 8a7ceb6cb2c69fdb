"""The rules, each a small function from facts to findings; `rules.ALL` in the order in which they are documented."""
