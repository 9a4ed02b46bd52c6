"""Draws the figures of a retrieval benchmark: a panel a file, a group of bars a kind of question, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import NotFound, UsageError

if TYPE_CHECKING:
    from holdfast_bench.retrieval import Kind, Report

_BARS = (("any@5", "docs"), ("recall@10", "docs"), ("ndcg@10", "docs"), ("recall@5", "sessions"))
_COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44")  # told apart by the colour-blind, too
_SHAPES = (".png", ".svg", ".pdf")


def ready(path: Path) -> None:
    """Whether we can draw, and there."""
    _pyplot()
    if path.suffix.lower() not in _SHAPES:
        raise UsageError(f"cannot draw a {path.suffix or 'file without an ending'}", f"One of: {', '.join(_SHAPES)}")
    if not path.absolute().parent.is_dir():
        raise NotFound(f"{path.absolute().parent} is not there", "Make the folder first")


def draw(reports: list[Report], path: Path) -> None:
    """Write the picture."""
    pyplot = _pyplot()
    groups = max(len(report.kinds) for report in reports)
    size = (3 + 1.5 * groups, 0.5 + 3.2 * len(reports))
    figure, panels = pyplot.subplots(len(reports), 1, squeeze=False, figsize=size, layout="constrained")
    for report, (panel,) in zip(reports, panels, strict=True):
        _panel(panel, report)
    names = panels[0][0].get_legend_handles_labels()
    figure.legend(*names, loc="outside lower center", ncols=len(_BARS), fontsize="small")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _panel(panel: Any, report: Report) -> None:
    width = 0.8 / len(_BARS)
    for number, ((name, level), colour) in enumerate(zip(_BARS, _COLOURS, strict=True)):
        means = [_means(kind, level)[name] for kind in report.kinds.values()]
        places = [group + (number - (len(_BARS) - 1) / 2) * width for group in range(len(means))]
        spread = [[100 * (one.mean - one.low) for one in means], [100 * (one.high - one.mean) for one in means]]
        label = name if level == "docs" else f"session {name}"
        heights = [100 * one.mean for one in means]
        panel.bar(places, heights, width, yerr=spread, label=label, color=colour, error_kw={"linewidth": 0.8})
    panel.set_xticks(range(len(report.kinds)), [f"{kind}\n{row.questions:,}" for kind, row in report.kinds.items()])
    panel.tick_params(axis="x", labelsize="small")
    panel.set_ylim(0, 105)
    panel.set_ylabel("%")
    panel.set_title(f"{report.file}, {', '.join(report.ran)}", fontsize="medium", loc="left")


def _means(kind: Kind, level: str) -> dict[str, Any]:
    return kind.docs if level == "docs" else kind.sessions


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise UsageError("drawing needs matplotlib", "pip install 'holdfast[bench]'") from None
    matplotlib.use("Agg")  # no screen is needed
    from matplotlib import pyplot

    return pyplot
