"""seedbench: benchmark and evaluation harness for agentic RL with self-distillation."""

from pathlib import Path as _Path

__version__ = "0.1.0"

# In a checkout the folders envs/ and baselines/ lie beside this package; in a wheel they lie inside it.
# Either way they are imported as seedbench.envs and seedbench.baselines, never as top-level packages.
_root = _Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").is_file() and (_root / "envs" / "alfworld").is_dir():
    __path__.append(str(_root))
