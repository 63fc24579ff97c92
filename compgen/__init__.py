"""compgen makes the training examples that people lack."""
