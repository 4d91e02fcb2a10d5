"""Speed and accuracy beside peers: ``python -m benchmarks NAME [--json FILE] [--quick]``."""
