"""The figures of docs/performance.md: each beside its yardsticks, taken in the same run (`python -m benchmarks`)."""
