"""Side-by-side measurements; each module runs as `python -m benchmarks.NAME`."""
