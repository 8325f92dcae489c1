"""A chat model as a trainable backbone: one training row per turn, teacher prompts made from messages."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import Parameter

from seedbench.contracts import Environment, Policy
from seedbench.errors import CheckpointCorrupt, ConfigError
from seedbench.policies.hf.actor import HfActor, choice_ids, sample_here
from seedbench.policies.hf.files import reason
from seedbench.policies.hf.model import ChatModel
from seedbench.policies.hf.options import HfOptions
from seedbench.policies.hf.sampling import sample_free, side_by_side
from seedbench.policies.hf.text import ChatText, ChatTrace, Ids, truncated
from seedbench.policies.tiny.transcript import decisions
from seedbench.prompt import SkillPosition, with_skill
from seedbench.train.backbone import Meter, Sample, Scores
from seedbench.types import Episode, Message


@dataclass(frozen=True, slots=True)
class TurnRow:
    """What scoring needs of a turn: its ordinary messages and task sentence, and the tokens of its trace."""

    messages: tuple[Message, ...]
    task: str
    trace: ChatTrace


class HfBackbone:
    """``text`` and ``options`` never change; ``model`` is trained in place."""

    def __init__(self, name: str, model: ChatModel, text: ChatText, options: HfOptions) -> None:
        self.name, self.model, self.text, self.options = name, model, text, options
        self.decoding = options.decoding
        self.meter = Meter()
        limit = int(getattr(model.inner.config, "max_position_embeddings", 0) or 0)
        self.context = options.context or limit
        if not self.context or (limit and self.context > limit):
            raise ConfigError(
                f"backbone.options.context is {self.context}, but '{name}' states a context of {limit or 'no'} tokens. "
                "Give a number that the model was made for."
            )
        self.room = min(options.max_prompt_tokens, self.context - options.max_new_tokens)
        if self.room < 1:
            raise ConfigError(
                f"backbone.options.max_new_tokens is {options.max_new_tokens}, which leaves nothing of a context of "
                f"{self.context} tokens for the prompt."
            )
        #: where privileged skills stand (:mod:`seedbench.prompt`); the method's, set by the runner
        self.skill_position: SkillPosition = "prefix"
        self._sampler: Any = None

    # -- acting --------------------------------------------------------------------------------------------
    def actor(self, temperature: float) -> Policy:
        if self.options.sampler == "vllm":
            from seedbench.policies.vllm import VllmSampler

            self._sampler = self._sampler or VllmSampler.start(self)
            return self._sampler.actor(temperature)
        sample = partial(sample_here, self.model, self.text, self.options, temperature)
        forkable = self.model.device.type == "cpu"
        return HfActor(self.text, self.options, self.room, temperature, sample, forkable, self.skill_position)

    # -- training rows -------------------------------------------------------------------------------------
    def samples(self, episodes: Sequence[Episode], environment: Environment) -> list[Sample]:
        rows = []
        for e, episode in enumerate(episodes):
            skill = episode.acting_skill.text if episode.acting_skill else None
            for i, turn in enumerate(episode.turns):
                messages = environment.render(episode.history(i))
                trace = turn.trace or self._trace(episode, i, messages, environment)
                if not trace.positions:
                    continue
                old = trace.logprobs or (0.0,) * len(trace.positions)
                turns = (i,) * len(trace.positions)
                length = len(trace.prompt) + len(trace.response)
                row = TurnRow(messages, episode.instruction, trace)
                rows.append(Sample(e, turns, old, trace.temperature, length, skill, row))
        return rows

    def _trace(
        self, episode: Episode, i: int, messages: Sequence[Message], environment: Environment
    ) -> ChatTrace:
        """Trace of a turn this model did not sample (a demonstration)."""
        prompt = self._ordinary(messages)
        turn = episode.turns[i]
        if self.decoding == "free":
            said = turn.completion.removeprefix(self.text.opened(messages))
            response = (*self.text.encode(said), self.text.end)
            return ChatTrace(prompt, response, tuple(range(len(response))), (), 1.0)
        response = choice_ids(self.text, self.options, turn.action)
        candidates = [choice_ids(self.text, self.options, c) for c in environment.choices(episode.history(i))]
        positions, allowed = decisions(response, candidates)
        return ChatTrace(prompt, response, positions, (), 1.0, allowed)

    def _ordinary(self, messages: Sequence[Message]) -> Ids:
        whole = self.text.prompt(messages)
        return truncated(whole, self.room, self.options.truncation) or whole

    def _prompt(self, sample: Sample, skill: str | None) -> Ids:
        """The prompt of a row with ``skill`` in it; the one really fed where nothing differs."""
        row: TurnRow = sample.data
        if skill == sample.skill:
            return row.trace.prompt
        if skill is None:
            return self._ordinary(row.messages)
        return self.text.prompt(with_skill(row.messages, skill, self.skill_position, row.task))

    def score(self, samples: Sequence[Sample], skills: Sequence[str | None] | None = None) -> Scores:
        rows, where = [], []
        for i, s in enumerate(samples):
            trace: ChatTrace = s.data.trace
            prompt = self._prompt(s, s.skill if skills is None else skills[i])
            self._check_fit(len(prompt), len(trace.response), "response")
            rows.append((*prompt, *trace.response))
            where.append([len(prompt) + p for p in trace.positions])
        self.meter.add(rows)
        allowed = [s.data.trace.allowed or ((),) * len(s.turns) for s in samples]
        logp, entropy = self.model.score(rows, where, [s.temperature for s in samples], allowed)
        counts = [len(w) for w in where]
        mask = torch.arange(max(counts))[None] < torch.tensor(counts)[:, None]
        mask = mask.to(logp.device)
        empty = logp.new_zeros(mask.shape)
        return Scores(empty.masked_scatter(mask, logp), empty.masked_scatter(mask, entropy), mask)

    def _check_fit(self, prompt: int, response: int, what: str) -> None:
        if prompt + response > self.context:
            raise ConfigError(
                f"A prompt of {prompt} tokens (skill included) and its {what} of {response} do not fit the context "
                f"of {self.context} tokens. Nothing is cut: shorten the skills, or lower "
                "backbone.options.max_prompt_tokens."
            )

    # -- hindsight -----------------------------------------------------------------------------------------
    def analyse(self, episodes: Sequence[Episode], environment: Environment) -> list[str]:
        """Greedy. An episode whose request cannot fit the context even without its steps gives ``""``."""
        limit = self.options.analysis_tokens
        found = [self.text.analysis(e, self.context - limit) for e in episodes]
        live = [(i, p) for i, p in enumerate(found) if p is not None]
        texts = [""] * len(episodes)
        for batch in side_by_side([len(p) + limit for _, p in live], self.options.batch_tokens):
            part = [live[k] for k in batch]
            answers = sample_free(self.model, [p for _, p in part], [], self.text.stop, limit, 0.0)
            self.meter.add([p for _, p in part] + [a.ids for a in answers])
            for (i, _), answer in zip(part, answers, strict=True):
                texts[i] = self.text.decode(answer.ids)
        return texts

    def analysis_nll(
        self, episodes: Sequence[Episode], targets: Sequence[str], environment: Environment
    ) -> tuple[Tensor, int]:
        rows, where = [], []
        for episode, target in zip(episodes, targets, strict=True):
            answer = (*self.text.encode(target), self.text.end)
            prompt = self.text.analysis(episode, self.context - len(answer))
            if prompt is None:
                self._check_fit(len(self.text.analysis(episode, 1 << 30) or ()), len(answer), "analysis")
                raise ConfigError(
                    f"The analysis request of task '{episode.task.id}' does not fit the context."
                )
            rows.append((*prompt, *answer))
            where.append(list(range(len(prompt), len(rows[-1]))))
        self.meter.add(rows)
        logp, _ = self.model.score(rows, where, [1.0] * len(rows))
        return -logp.sum(), len(logp)

    # -- weights -------------------------------------------------------------------------------------------
    def parameters(self) -> Iterator[Parameter]:
        return self.model.inner.parameters()

    def frozen(self) -> HfBackbone:
        inner = copy.deepcopy(self.model.inner).requires_grad_(False)
        twin = HfBackbone(self.name, ChatModel(inner, self.model.compute), self.text, self.options)
        twin.meter, twin.skill_position = self.meter, self.skill_position
        return twin

    def flops(self, tokens: int, backward: bool) -> float:
        size = sum(p.numel() for p in self.model.inner.parameters())
        forwards = 4.0 if self.model.checkpointing else 3.0  # recomputed activations cost one more
        return 2.0 * (forwards if backward else 1.0) * size * tokens

    def save(self, folder: Path) -> None:
        """A folder that ``from_pretrained`` reads: sharded safetensors, configuration, tokenizer."""
        folder.mkdir(parents=True, exist_ok=True)
        self.model.inner.save_pretrained(folder)
        self.text.tokenizer.save_pretrained(folder)

    def restore(self, folder: Path) -> None:
        """Read weights that :meth:`save` wrote. Raises :class:`CheckpointCorrupt`, nothing half loaded."""
        cure = "Delete that checkpoint folder to resume from the one before it."
        state: dict[str, Tensor] = {}
        try:
            for path in sorted(folder.glob("model*.safetensors")):
                state |= load_file(path)
        except (OSError, SafetensorError) as error:
            raise CheckpointCorrupt(
                f"Checkpoint {folder} cannot be read ({reason(error)}). {cure}"
            ) from error
        own = self.model.inner.state_dict()
        homes = {v.data_ptr() for k, v in own.items() if k in state}
        lost = [k for k, v in own.items() if k not in state and v.data_ptr() not in homes]
        strange = [k for k, v in state.items() if k not in own or own[k].shape != v.shape]
        if lost or strange:
            name = (lost or strange)[0]
            raise CheckpointCorrupt(
                f"Checkpoint {folder} does not hold this model: weight '{name}' is missing or differs. {cure}"
            )
        self.model.inner.load_state_dict(state, strict=False)

    def sha256(self) -> str:
        digest = hashlib.sha256()
        seen: set[int] = set()
        for name, p in sorted(self.model.inner.state_dict().items()):
            if p.data_ptr() in seen:  # a tied weight counts once
                continue
            seen.add(p.data_ptr())
            digest.update(name.encode())
            digest.update(p.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        return digest.hexdigest()
