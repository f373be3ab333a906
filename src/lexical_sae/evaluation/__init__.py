"""Is the model right, and is the why true: measures of labels, entities and explanations."""
