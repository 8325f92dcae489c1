"""A random Qwen2 of about 50,000 parameters with a byte-level tokenizer and a chat template, on disk."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from seedbench.types import (
    Action,
    HiddenTask,
    History,
    Message,
    Observation,
    Outcome,
    PublicTask,
    Start,
    StepResult,
    Task,
)

torch.set_num_threads(1)  # threads of a tiny model only wait for one another
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: Opens the reasoning itself, and drops the reasoning of earlier turns.
THINKING_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content.split('</think>')[-1] if m.role == 'assistant' else m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
TEXT = [
    "You are an agent that solves household tasks in a text version of the ALFRED world.",
    "Your current observation is: You are in the middle of a room. Looking quickly around you, you see a",
    "cabinet 1, a countertop 2, a drawer 3, a fridge 1, a microwave 1, a sinkbasin 1. Your task is to: put a",
    "clean apple in the fridge. The actions you may take now are: 'go to cabinet 1' 'open drawer 2' 'examine'",
    "First reason step by step about the situation, inside <think> </think> tags. Then give exactly one of the",
    "actions above, inside <action> </action> tags. You have taken 3 action(s) so far. [Observation 1: 'The ",
] * 3


def tokenizer(template: str = TEMPLATE, pad: str = "<|im_end|>") -> PreTrainedTokenizerFast:
    """Byte-level BPE of at most 600 tokens; the pad token is the end token unless told otherwise (BR-026)."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(TEXT, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|im_end|>", pad_token=pad, chat_template=template
    )


def write_model(
    folder: Path,
    template: str = TEMPLATE,
    seed: int = 0,
    context: int = 4096,
    tied: bool = True,
    sharp: float = 1.0,
) -> Path:
    """Save model and tokenizer; ``sharp`` scales the embedding, so that larger values sample less evenly."""
    words = tokenizer(template)
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=context, tie_word_embeddings=tied,
        eos_token_id=words.eos_token_id, pad_token_id=words.pad_token_id, bos_token_id=None, initializer_range=0.3,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(sharp)
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


class ToyEnv:
    """Three turns in one room; short prompts, so that tests of tokens stay cheap."""

    def __init__(self, turns: int = 3) -> None:
        self.turns = turns

    def tasks(self, n: int) -> list[Task]:
        return [Task(PublicTask(f"toy-{i}", "toy", "room"), HiddenTask(None)) for i in range(n)]

    def session(self) -> ToySession:
        return ToySession(self.turns)

    def render(self, history: History) -> tuple[Message, ...]:
        past = "\n".join(f"{p.observation.text} {p.action}" for p in history.past)
        return (
            Message(
                "user", f"Your task is to: {history.instruction}\n{past}\n{history.observation.text}\n\nAct."
            ),
        )

    def choices(self, history: History) -> tuple[str, ...]:
        return history.observation.legal

    def parse(self, completion: str) -> Action:
        return Action(completion.strip(), bool(completion.strip()), "" if completion.strip() else "empty")

    def wrap(self, action: str) -> str:
        return action


class ToySession:
    def __init__(self, turns: int) -> None:
        self.left = turns

    def reset(self, task: Task, seed: int) -> Start:
        self.name = task.id
        return Start(f"clean the apple of {task.id}", self._see())

    def _see(self) -> Observation:
        # longer and longer, so that prompts in a batch differ in length
        return Observation(
            "You see a drawer 1. " * (1 + int(self.name[-1]) + self.left),
            ("open drawer 1", "open drawer 12", "examine"),
        )

    def step(self, action: Action) -> StepResult:
        self.left -= 1
        return StepResult(self._see(), 1.0 if self.left == 0 else 0.0, terminated=self.left == 0)

    def outcome(self) -> Outcome:
        return Outcome(True, 1.0)

    def close(self) -> None:
        pass
