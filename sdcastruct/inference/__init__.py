"""Inference engines: the only compiled code that knows a graph."""
