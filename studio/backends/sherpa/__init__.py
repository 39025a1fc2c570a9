"""Small natural voices in ONNX, spoken by sherpa-onnx: no torch, and a plain CPU will do."""
