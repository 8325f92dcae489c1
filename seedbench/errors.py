"""Every failure a user can meet has a class, one sentence of what and where, and one of what to do."""

from __future__ import annotations


class SeedbenchError(Exception):
    """Base class. The command line prints the message without a traceback and exits with ``exit_code``."""

    exit_code = 2


class UnknownName(SeedbenchError):
    """An environment, method, policy or backbone that is not registered."""


class ConfigError(SeedbenchError):
    """A setting that does not exist, has a wrong value, or contradicts another."""


class DataMissing(SeedbenchError):
    """Files the user must bring. The message holds the exact command or variable."""


class DataCorrupt(SeedbenchError):
    """A file is there but cannot be read as what it should be."""


class ExtraMissing(SeedbenchError):
    """An optional package is needed. The message holds the ``pip install`` line."""


class ModelMissing(SeedbenchError):
    """Weights are not on this machine. The message says where they may lie and offers ``tiny``."""


class CheckpointCorrupt(SeedbenchError):
    """A checkpoint cannot be loaded or does not belong to this run."""


class RunConflict(SeedbenchError):
    """A run folder exists and was made with other settings."""


class LeakFound(SeedbenchError):
    """A prompt held more than ordinary history, or training met evaluation tasks."""

    exit_code = 3


class RetrieverFailed(SeedbenchError):
    """A retrieval server did not answer, or answered something that is no result."""


class WorkerLost(SeedbenchError):
    """A process that plays episodes was killed. The run resumes."""


class EpisodeOver(SeedbenchError):
    """``step`` was called after the episode ended, or before ``reset``."""


class StorageFull(SeedbenchError):
    """The run folder cannot be written. Nothing already written is lost; the run resumes."""

    exit_code = 4
