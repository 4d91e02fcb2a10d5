"""What probabilities are worth: ROC and precision–recall curves of two classes, reliability of any number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldsvm.metrics import Answers, reliability
from ldsvm.report.plotting.base import INK, OKABE_ITO, Drawing, drawn, figure_of, plain


@dataclass(frozen=True)
class MethodAnswers:
    """The answers of one method on the test set; `Answers.probabilities` are there.

    marked: whether a point on the curves shows what it answers.
    """

    name: str
    answers: Answers
    marked: bool = False


def answer_curves(methods: Sequence[MethodAnswers], title: str) -> Drawing:
    """Return a figure with a line for each method: ROC, precision–recall and reliability; of several classes the last.

    Reliability: the share of right answers against the confidence, in the bins of the metric ece; the dotted diagonal
    is what probabilities promise.
    """
    two = len(methods[0].answers.classes) == 2
    n = 3 if two else 1
    figure, panels = figure_of(4.2 * n if two else 5.2, 4.4, columns=n, shared=False)
    axes = list(panels) if two else [panels]
    for k, method in enumerate(methods):
        style = {"color": OKABE_ITO[k % len(OKABE_ITO)], "lw": 1.6, "label": plain(method.name)}
        if two:
            _two_classes(axes, method.answers, style)
        if two and method.marked:
            _point(axes, method.answers, OKABE_ITO[k % len(OKABE_ITO)])
        bins = reliability(method.answers)
        axes[-1].plot(bins[:, 0], bins[:, 1], marker="o", ms=4, **style)
    axes[-1].plot([0, 1], [0, 1], ls=":", color=INK, lw=1)
    low = 0.5 if two else 0.0
    axes[-1].set(xlabel="confidence of the prediction", ylabel="accuracy", title="reliability")
    axes[-1].set(xlim=(low - 0.02, 1.02), ylim=(-0.02, 1.02))
    axes[-1].legend(frameon=False, fontsize=9, loc="upper left")
    figure.suptitle(plain(title), fontsize=11, color=INK)
    return drawn(figure)


def _point(axes: Sequence[Any], answers: Answers, color: str) -> None:
    """Mark what the answers come to: false alarms and found rows, recall and precision."""
    true, found = answers.codes == 1, answers.predicted == 1
    recall, precision = (found & true).sum() / max(true.sum(), 1), (found & true).sum() / max(found.sum(), 1)
    for axis, x, y in ((axes[0], found[~true].mean(), recall), (axes[1], recall, precision)):
        axis.plot(x, y, "o", ms=8, color=color, markeredgecolor=INK, clip_on=False, zorder=3)


def _two_classes(axes: Sequence[Any], answers: Answers, style: dict[str, Any]) -> None:
    from sklearn.metrics import precision_recall_curve, roc_curve

    roc, precision_recall = axes[:2]
    false, true, _ = roc_curve(answers.codes, answers.needed[:, 1])
    roc.plot(false, true, **style)
    roc.plot([0, 1], [0, 1], ls=":", color=INK, lw=1)
    words = {"xlabel": "false alarms (share of the negative class)", "ylabel": "detected (share of the positive class)"}
    roc.set(title="ROC", **words)
    precision, recall, _ = precision_recall_curve(answers.codes, answers.needed[:, 1])
    precision_recall.plot(recall, precision, drawstyle="steps-post", **style)
    share = answers.codes.mean()
    precision_recall.axhline(share, ls=":", color=INK, lw=1)
    precision_recall.set(title="precision–recall", xlabel="recall", ylabel="precision", ylim=(-0.02, 1.02))
