"""Environments, one folder each; imported as ``seedbench.envs``."""
