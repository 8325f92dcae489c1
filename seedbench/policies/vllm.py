"""Generation by vLLM with the trainer's weights (extra ``vllm``, GPU). Scoring stays with the trainer.

The contract is that of :mod:`seedbench.policies.hf.actor`: token ids in, sampled ids and their log-probabilities
at the sampling temperature out. Written against vLLM's offline ``LLM`` class; not run by this project's tests,
which have no GPU: they drive the adapter with a stand-in engine.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbench.errors import ConfigError, ExtraMissing
from seedbench.policies.hf.actor import HfActor, Request
from seedbench.policies.hf.sampling import Sampled
from seedbench.rollout import derive_seed

if TYPE_CHECKING:
    from seedbench.policies.hf.backbone import HfBackbone

#: Share of the GPU's memory for vLLM; the rest holds float32 weights, gradients and optimiser.
MEMORY = 0.3


class VllmSampler:
    """``engine``: a ``vllm.LLM``; ``parameters``: its ``SamplingParams`` class."""

    def __init__(self, backbone: HfBackbone, engine: Any, parameters: Any) -> None:
        self.backbone, self.engine, self.parameters = backbone, engine, parameters

    @classmethod
    def start(cls, backbone: HfBackbone) -> VllmSampler:
        """An engine in this process. Raises :class:`ExtraMissing` or :class:`ConfigError`."""
        if backbone.decoding != "free":
            raise ConfigError("sampler = 'vllm' writes free text; set backbone.options.decoding to 'free'.")
        # in one process with the trainer, so that weights are handed over and not pickled
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        try:
            import vllm
        except ImportError as error:
            raise ExtraMissing(
                "sampler = 'vllm' needs vLLM and a GPU: pip install 'seedbench[vllm]', or leave the option out."
            ) from error
        with tempfile.TemporaryDirectory() as folder:
            backbone.save(Path(folder))
            engine = vllm.LLM(
                model=folder,
                dtype="bfloat16",
                max_model_len=backbone.context,
                gpu_memory_utilization=MEMORY,
                # the default reports log-probabilities before temperature (BR-030)
                logprobs_mode="processed_logprobs",
            )
        return cls(backbone, engine, vllm.SamplingParams)

    def actor(self, temperature: float) -> HfActor:
        """A policy with the backbone's present weights."""
        self.sync()
        b = self.backbone
        sample = partial(self.sample, temperature)
        return HfActor(b.text, b.options, b.room, temperature, sample, False, b.skill_position)

    def sync(self) -> None:
        """Copy the trainer's weights, and forget what was computed with older ones."""
        weights = list(self.backbone.model.inner.named_parameters())
        self.engine.apply_model(lambda model: model.load_weights((n, p.detach()) for n, p in weights))
        self.engine.reset_prefix_cache()

    def sample(self, temperature: float, requests: Sequence[Request]) -> list[Sampled]:
        options, text = self.backbone.options, self.backbone.text
        settings = [
            self.parameters(
                temperature=temperature,
                max_tokens=options.max_new_tokens,
                stop_token_ids=sorted(text.stop),
                seed=derive_seed("act", r.view.seed, r.view.history.step) >> 32,
                logprobs=0,  # of the sampled token only
                detokenize=False,
            )
            for r in requests
        ]
        prompts = [{"prompt_token_ids": list(r.prompt)} for r in requests]
        outputs = self.engine.generate(prompts, settings, use_tqdm=False)
        return [_sampled(o.outputs[0]) for o in outputs]


def _sampled(output: Any) -> Sampled:
    """Ids as sampled. A missing log-probability is an error here, not later in a loss (BR-031)."""
    ids = list(output.token_ids)
    if output.logprobs is None or len(output.logprobs) != len(ids):
        raise ConfigError("vLLM gave no log-probability for some sampled tokens; its version does not fit.")
    logprobs = [table[token].logprob for token, table in zip(ids, output.logprobs, strict=True)]
    return Sampled(ids, list(range(len(ids))), logprobs, [], output.finish_reason == "length")
