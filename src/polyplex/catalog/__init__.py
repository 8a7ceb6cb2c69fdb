"""What servers offer, made small: search, descriptions, exports, judgements."""
