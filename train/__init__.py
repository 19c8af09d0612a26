"""Training, evaluation and the measures of strength."""
