"""Settings of a chat-model backbone. All of them land in the run record as ``backbone.options``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Truncation = Literal["stop", "error", "left", "middle"]


class HfOptions(BaseModel):
    """``context``, ``max_*`` and ``analysis_tokens`` count tokens of the model's own tokenizer.

    ``path``
        folder with the weights; default: searched for (see :mod:`seedbench.policies.hf.files`).
    ``device``, ``dtype``
        ``auto``: the GPU if there is one, and bfloat16 there. ``dtype`` is what matrix products use; weights,
        gradients and optimiser stay in float32, because an update of 1e-6 vanishes in a bfloat16 weight.
    ``context``
        tokens of prompt and response together; 0: what the model's configuration allows.
    ``truncation``
        what happens to an acting prompt over ``max_prompt_tokens``: ``stop`` ends the episode with status
        ``context_limit``; ``error`` makes it a model error that names both numbers; ``left`` keeps the last
        tokens (as the released SEED scripts do; the task sentence may go); ``middle`` keeps the first and last
        tokens, so that task and request stay and the oldest history goes. A teacher's prompt is never cut.
    ``decoding``
        ``free``: the model writes a completion in the protocol's format (the papers). ``choices``: it chooses
        among the announced actions token by token; for models that cannot follow the format. Tokens without an
        alternative are appended, not sampled. ``choice_prefix`` is appended before the choice.
    ``batch_tokens``
        padded tokens, prompt and response, that are generated side by side: memory only.
    ``sampler``
        who generates: this process, or vLLM (extra ``vllm``) with the trainer's weights.
    ``download``
        allow a download from the Hugging Face hub; never done otherwise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = ""
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    context: int = Field(0, ge=0)
    max_prompt_tokens: int = Field(4096, ge=1)
    max_new_tokens: int = Field(512, ge=1)
    analysis_tokens: int = Field(1024, ge=1)
    truncation: Truncation = "stop"
    decoding: Literal["free", "choices"] = "free"
    choice_prefix: str = ""
    enable_thinking: bool = False
    gradient_checkpointing: bool = False
    batch_tokens: int = Field(65536, ge=1)
    sampler: Literal["transformers", "vllm"] = "transformers"
    download: bool = False
