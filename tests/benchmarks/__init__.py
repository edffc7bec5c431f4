"""The benchmarks are run, never judged: no test depends on how fast this machine is."""
