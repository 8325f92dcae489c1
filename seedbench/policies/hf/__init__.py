"""Chat language models through transformers: ``hf:<path or id>`` and the named models of the papers."""

from seedbench.policies.hf.backbone import HfBackbone
from seedbench.policies.hf.load import load_hf
from seedbench.policies.hf.options import HfOptions

__all__ = ["HfBackbone", "HfOptions", "load_hf"]
