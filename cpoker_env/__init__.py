"""13-card Chinese Poker for computer play."""
