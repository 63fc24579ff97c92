"""Trained models: opening, sampling and predicting, whatever they were trained as."""
