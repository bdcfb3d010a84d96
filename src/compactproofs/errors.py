"""Every failure a user can cause, as an exception whose message says what to do next.

The command line prints these without a traceback; anything else that escapes is a bug of ours.
"""


class CompactProofsError(Exception):
    """Base of all expected errors. The message is written for the user."""


class ModelError(CompactProofsError):
    """The weights, the model file or its configuration cannot be used as given."""


class TaskError(CompactProofsError):
    """The task does not exist or does not fit the model."""


class StrategyError(CompactProofsError):
    """A strategy name or parameter is unknown, or the strategy does not apply to this model."""


class InfeasibleError(CompactProofsError):
    """The computation is well defined but would take too long; the message estimates how long."""


class UnsupportedError(InfeasibleError, StrategyError):
    """The computation is not known for networks of this kind; the message says what stands in the way and what can be done."""


class MissingExtraError(CompactProofsError):
    """An optional dependency is needed; the message names the extra that installs it, from an index and in a clone.

    Example:
        >>> print(MissingExtraError("a report needs plotly", "report"))
        a report needs plotly: pip install 'compactproofs[report]', or in a clone of the repository pip install -e '.[report]'
    """

    def __init__(self, message: str, extra: str | None = None) -> None:
        how = f": pip install 'compactproofs[{extra}]', or in a clone of the repository pip install -e '.[{extra}]'"
        super().__init__(message if extra is None else message + how)


class LedgerError(CompactProofsError):
    """A ledger that is not well formed."""


class CertificateError(CompactProofsError):
    """A certificate cannot be written: the strategy, the task or the place for it does not allow it."""


class DisagreementError(CompactProofsError):
    """Two ways to prove the same thing contradict each other, so one of them is wrong. Always an error of this package."""

    def __init__(self, what: str, subject: str) -> None:
        super().__init__(
            f"ALARM: {what}. One of the two is wrong, so take neither for a theorem. Please report this with the model file and the line "
            f"that follows: {subject}"
        )


class ResultsError(CompactProofsError):
    """Results cannot be kept or read where they should be."""


class ReportError(CompactProofsError):
    """A report cannot be made."""


class SweepError(CompactProofsError):
    """A sweep cannot be planned or carried out."""
