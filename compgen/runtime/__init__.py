"""Bundles, what runs them, and decoding; torch is imported only where TorchScript is run."""
