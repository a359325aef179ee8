"""Layers for your own networks: `conv`, and `exporting` for torch.export and ONNX."""
