"""polyplex: one endpoint in front of any number of Model Context Protocol servers."""
