"""Methods, one short file each; imported as ``seedbench.baselines``."""
