"""Judging what servers offer: findings in order of harm, each with a wording to paste.

Pure over entries: `facts` reads them, `rules` judge single entries and servers, `confusion` asks an index which tools
find their siblings first, `wording` writes better words from what is there, `judge` puts it together.
"""
