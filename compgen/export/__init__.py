"""Export: ONNX, TorchScript and weights by name for networks, rules and arrays for grammars, and their verification."""
