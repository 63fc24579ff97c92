"""What makes examples: the contract, the registry, and methods that are controls."""
