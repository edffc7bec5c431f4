"""One worker under a constant mixed load: what it holds in the end is what it held in the beginning."""
