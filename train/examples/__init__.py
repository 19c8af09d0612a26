"""Short scripts that learn the game with other libraries, to be read and changed."""
