"""The tiny model as a trainable backbone: transcripts in, log-probabilities at decided tokens out."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import Parameter

from seedbench.contracts import Environment
from seedbench.errors import CheckpointCorrupt, ConfigError
from seedbench.policies.tiny.actor import TinyActor
from seedbench.policies.tiny.model import Cache, TinyConfig, TinyLM, hf_state_dict
from seedbench.policies.tiny.tokenizer import BOS, END, TinyTokenizer
from seedbench.policies.tiny.transcript import (
    TurnTrace,
    continuation,
    decisions,
    hindsight_ids,
    opening,
    skill_block,
)
from seedbench.train.backbone import Meter, Sample, Scores
from seedbench.types import Episode

ANALYSIS_TOKENS = 96


class TinyBackbone:
    name = "tiny"
    decoding = "choices"

    def __init__(self, model: TinyLM, tok: TinyTokenizer) -> None:
        self.model, self.tok = model, tok
        self.meter = Meter()

    # -- files ---------------------------------------------------------------------------------------------
    @classmethod
    def load(cls, folder: Path) -> TinyBackbone:
        """Read ``config.json``, ``tokenizer.json`` and ``model.safetensors`` from ``folder``."""
        try:
            config = TinyConfig(**json.loads((folder / "config.json").read_text())["tiny"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointCorrupt(f"{folder} is not a tiny model: {error}.") from error
        backbone = cls(TinyLM(config), TinyTokenizer.load(folder / "tokenizer.json"))
        backbone.restore(folder)
        return backbone

    def save(self, folder: Path) -> None:
        """Write a folder that ``transformers.AutoModelForCausalLM`` reads as Qwen2, and :meth:`load` as tiny.

        Its tokenizer is read by ``transformers.PreTrainedTokenizerFast``; ``AutoTokenizer`` of transformers 5
        puts Qwen2's own byte-level splitting on every model of that type, whatever the file says.
        """
        folder.mkdir(parents=True, exist_ok=True)
        state = {k: v.detach().clone() for k, v in hf_state_dict(self.model).items() if k != "lm_head.weight"}
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        config = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "torch_dtype": "float32"}
        config |= {**self.model.config.to_hf(), "tiny": self.model.config.to_dict()}
        (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
        self.tok.inner.save(str(folder / "tokenizer.json"))
        special = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "bos_token": "<bos>"}
        special |= {"eos_token": "<end>", "unk_token": "<unk>"}
        (folder / "tokenizer_config.json").write_text(json.dumps(special, indent=1, sort_keys=True) + "\n")

    def restore(self, folder: Path) -> None:
        path = folder / "model.safetensors"
        try:
            state = {k.removeprefix("model."): v for k, v in load_file(path).items()}
            self.model.load_state_dict(state)
        except (OSError, SafetensorError, RuntimeError) as error:
            raise CheckpointCorrupt(
                f"Checkpoint {path} cannot be loaded ({str(error).splitlines()[0]}). "
                "Delete that checkpoint folder to resume from the one before it."
            ) from error

    def sha256(self) -> str:
        digest = hashlib.sha256()
        for name, p in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(p.contiguous().numpy().tobytes())
        return digest.hexdigest()

    # -- acting --------------------------------------------------------------------------------------------
    def actor(self, temperature: float) -> TinyActor:
        return TinyActor(self.model, self.tok, temperature)

    def parameters(self) -> Iterator[Parameter]:
        return self.model.parameters()

    def frozen(self) -> TinyBackbone:
        twin = TinyBackbone(copy.deepcopy(self.model), self.tok)
        twin.model.requires_grad_(False)
        twin.meter = self.meter
        return twin

    def flops(self, tokens: int, backward: bool) -> float:
        size = sum(p.numel() for p in self.model.parameters())
        return (6.0 if backward else 2.0) * size * tokens

    # -- training rows -------------------------------------------------------------------------------------
    def samples(self, episodes: Sequence[Episode], environment: Environment) -> list[Sample]:
        rows = []
        for e, episode in enumerate(episodes):
            traces = [t.trace or self._trace(episode, i, environment) for i, t in enumerate(episode.turns)]
            turns = tuple(i for i, t in enumerate(traces) for _ in t.positions)
            if not turns:
                continue
            old = tuple(x for t in traces for x in (t.logprobs or (0.0,) * len(t.positions)))
            body = self._body(traces)
            skill = episode.acting_skill.text if episode.acting_skill else None
            length = len(body[0]) + len(skill_block(self.tok, skill))
            rows.append(Sample(e, turns, old, traces[0].temperature, length, skill, body))
        return rows

    def _trace(self, episode: Episode, i: int, environment: Environment) -> TurnTrace:
        """Trace of a turn this model did not sample (a demonstration)."""
        history = episode.history(i)
        action = (*self.tok.encode(episode.turns[i].action), END)
        candidates = [(*self.tok.encode(c), END) for c in environment.choices(history)]
        first = opening(self.tok, history.instruction, history.observation)
        prompt = (BOS, *first) if i == 0 else continuation(self.tok, history.observation)
        return TurnTrace(prompt, action, *decisions(action, candidates))

    @staticmethod
    def _body(traces: Sequence[TurnTrace]) -> tuple[list[int], list[int], list[tuple[int, ...]]]:
        """Token ids (``<bos>`` first, no skill), decided positions in them, allowed ids at each."""
        ids: list[int] = []
        positions: list[int] = []
        for t in traces:
            ids += t.prompt
            positions += [len(ids) + p for p in t.positions]
            ids += t.action
        return ids, positions, [a for t in traces for a in t.allowed]

    def score(self, samples: Sequence[Sample], skills: Sequence[str | None] | None = None) -> Scores:
        rows, where = [], []
        for i, s in enumerate(samples):
            ids, positions, _ = s.data
            block = skill_block(self.tok, s.skill if skills is None else skills[i])
            rows.append([ids[0], *block, *ids[1:]])
            where.append([p + len(block) for p in positions])
            if len(rows[-1]) > self.model.config.context:
                raise ConfigError(
                    f"A transcript of {len(ids)} tokens with a skill of {len(block)} does not fit the context of "
                    f"{self.model.config.context}. Lower the step limit, or shorten the skills."
                )
        self.meter.add(rows)
        hidden = self.model.hidden(_pad(rows, 0))
        width = max(map(len, where))
        mask = _pad([[1] * len(w) for w in where], 0, width).bool()
        before = _pad([[p - 1 for p in w] for w in where], 0, width)
        logits = self.model.logits(hidden.gather(1, before[..., None].expand(-1, -1, hidden.shape[-1])))
        logits = logits.masked_fill(~self._allowed(samples, logits.shape), -1e9)
        temperature = torch.tensor([s.temperature for s in samples])[:, None, None]
        logp = F.log_softmax(logits / temperature, -1)
        targets = _pad([[r[p] for p in w] for r, w in zip(rows, where, strict=True)], 0, width)
        chosen = logp.gather(2, targets[..., None])[..., 0]
        entropy = -(logp.exp() * logp.clamp(min=-50)).sum(-1)
        return Scores(chosen.masked_fill(~mask, 0.0), entropy.masked_fill(~mask, 0.0), mask)

    @staticmethod
    def _allowed(samples: Sequence[Sample], shape: torch.Size) -> Tensor:
        """Candidate tokens at every decided position; padded positions allow everything (finite numbers)."""
        allowed = torch.zeros(shape, dtype=torch.bool)
        b, d, v = [], [], []
        for i, s in enumerate(samples):
            for j, options in enumerate(s.data[2]):
                b += [i] * len(options)
                d += [j] * len(options)
                v += options
            allowed[i, len(s.data[2]) :] = True
        allowed[torch.tensor(b), torch.tensor(d), torch.tensor(v)] = True
        return allowed

    # -- hindsight -----------------------------------------------------------------------------------------
    @torch.inference_mode()
    def analyse(self, episodes: Sequence[Episode], environment: Environment) -> list[str]:
        questions = [list(hindsight_ids(self.tok, e)) for e in episodes]
        room = self.model.config.context - ANALYSIS_TOKENS
        live = [i for i, q in enumerate(questions) if len(q) <= room]
        answers: list[list[int]] = [[] for _ in episodes]
        if not live:
            return ["" for _ in episodes]
        self.meter.add(questions[i] for i in live)
        cache = Cache(self.model.config, len(live))
        logits = self.model.append(cache, [questions[i] for i in live])
        for _ in range(ANALYSIS_TOKENS):
            tokens = logits.argmax(-1).tolist()
            for i, token in zip(live, tokens, strict=True):
                answers[i].append(token)
            keep = [j for j, token in enumerate(tokens) if token != END]
            if not keep:
                break
            if len(keep) < len(live):
                cache.select(keep)
                live = [live[j] for j in keep]
            logits = self.model.append(cache, [[tokens[j]] for j in keep])
        self.meter.add(answers)
        return [self.tok.decode(a) for a in answers]

    def analysis_nll(
        self, episodes: Sequence[Episode], targets: Sequence[str], environment: Environment
    ) -> tuple[Tensor, int]:
        questions = [list(hindsight_ids(self.tok, e)) for e in episodes]
        answers = [[*self.tok.encode(t), END] for t in targets]
        rows = [q + a for q, a in zip(questions, answers, strict=True)]
        self.meter.add(rows)
        pairs = [
            (i, len(q) + k)
            for i, (q, a) in enumerate(zip(questions, answers, strict=True))
            for k in range(len(a))
        ]
        b, t = (torch.tensor(x) for x in zip(*pairs, strict=True))
        ids = _pad(rows, 0)
        logits = self.model.logits(self.model.hidden(ids)[b, t - 1])
        return F.cross_entropy(logits, ids[b, t], reduction="sum"), len(pairs)


def _pad(rows: Sequence[Sequence[int]], value: int, width: int | None = None) -> Tensor:
    """(B, T) long tensor of ragged rows, right-padded."""
    width = width or max(map(len, rows))
    return torch.tensor([[*r, *[value] * (width - len(r))] for r in rows], dtype=torch.long)
