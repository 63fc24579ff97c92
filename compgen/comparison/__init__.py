"""The experiment that answers which augmentation helps on given data."""
