"""`models list`, `models install` and `models test`: embedders and rerankers."""

from __future__ import annotations

from holdfast import config as settings_module
from holdfast.cli.output import format_bytes
from holdfast.errors import Refused
from holdfast.verbs import search_models

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.embedders.known_models import KnownModel
    from holdfast.verbs.search_models import ListedModel, Measurement

_SETTINGS = {"embedder": "search.embedder", "reranker": "search.reranker"}  # by kind of model
_REGISTRIES = {"pypi": "the package index of pip", "npm": "the registry of npm"}


def list_models(call: Invocation) -> int:
    """`holdfast models list`."""
    settings = call.load_settings()
    report = {
        "embedder": settings_module.hide_password(settings.embedder),
        "reranker": settings_module.hide_password(settings.reranker), "folder": settings_module.find_models_folder(),
        "models": search_models.list_models(settings),
    }  # fmt: skip
    return call.answer(report, _print_models)


def install(call: Invocation) -> int:
    """`holdfast models install`."""
    from holdfast.embedders.install import install_model
    from holdfast.embedders.known_models import EMBEDDER, find_model

    model = find_model(call["name"])
    if model.unclear_licence and not call["accept_licence"]:
        message = f"the licence of {model.name} is not clear: {model.unclear_licence}"
        raise Refused(message, "Add --accept-licence if you may use it")
    if not call["from"] and not model.is_installed:
        source = model.source
        size, registry = format_bytes(source.bytes), _REGISTRIES[source.registry]
        call.output.print_message(f"downloading {source.label} ({size}) from {registry}")
    installed = install_model(model, call["from"])
    value = f"{model.setting},use" if model.kind == EMBEDDER else model.setting
    if call["use"]:
        _use(call, _SETTINGS[model.kind], value)
    used = {kind: value if call["use"] and kind == model.kind else None for kind in _SETTINGS}
    report = {"model": model.name, "installed": installed, "folder": model.folder, "sha256": model.sha256, **used}
    return call.answer(report, lambda output, report: _print_installed(output, report, model, value))


def _use(call: Invocation, name: str, value: str) -> None:
    from holdfast.verbs.settings import change

    home, setting = settings_module.find_home(call["home"]), settings_module.find_setting(name)
    change(home, setting, value, "the command line")
    if settings_module.find_setting_source(setting, home) == setting.env:
        call.output.print_message(f"unset {setting.env}, which overrides {name}", "yellow")


def test(call: Invocation) -> int:
    """`holdfast models test`; exit 1 if a model does not work."""
    results = search_models.measure_models(call.load_settings(), call["name"])
    return call.answer({"models": results}, _print_results, 0 if all(result.ok for result in results) else 1)


def _print_models(output: Output, report: dict[str, Any]) -> None:
    models: list[ListedModel] = report["models"]
    rows = [
        (
            model.name, model.kind, _describe_state(model), f"{model.bytes / 1_000_000:.0f} MB",
            _format_share(model.figures.hybrid_recall), _format_share(model.figures.notes_mrr),
            f"{model.figures.question_ms:g}", model.languages.removesuffix(" languages"), model.licence,
        )
        for model in models
    ]  # fmt: skip
    head = ("NAME", "KIND", "STATE", "SIZE", "CHATS", "NOTES", "MS", "LANGUAGES", "LICENCE")
    output.print_table(head, rows, ("bold", "", "cyan", "", "", "", "", "", "dim"))
    for model in models:
        if model.problem:
            output.print_message(f"{model.name}: {model.problem}", "yellow")
        if model.unclear_licence:
            output.print_message(f"{model.name}: its licence is not clear: {model.unclear_licence}")
    output.print_message(
        "CHATS: recall@10 of hybrid search in chats; NOTES: mean reciprocal rank in notes, by the model alone; "
        "MS: milliseconds for a question, of a reranker with its 20 passages. Details: docs/models.md"
    )
    for kind, setting in _SETTINGS.items():
        output.print_message(f"{setting} is {report[kind]}")
    output.print_message("Install a model with `holdfast models install NAME`")


def _describe_state(model: ListedModel) -> str:
    if model.problem:
        return "unusable"
    if model.in_use:
        return "in use" if model.installed else "missing"
    return ("bundled" if model.bundled else "installed") if model.installed else "available"


def _format_share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _print_installed(output: Output, report: dict[str, Any], model: KnownModel, value: str) -> None:
    state = "installed" if report["installed"] else "already installed:"
    output.print_line(f"{output.style(state, 'green')} {model.name} in {report['folder']}")
    setting = _SETTINGS[model.kind]
    if not report[model.kind]:
        output.print_line(f"use it: holdfast config {setting} {value}")
    elif model.kind == "embedder":
        output.print_line(f"{setting} is {value}. Make its vectors now with `holdfast embed`")
    else:
        output.print_line(f"{setting} is {value}")


def _print_results(output: Output, report: dict[str, Any]) -> None:
    results: list[Measurement] = report["models"]
    if not results:
        output.print_empty("No embedder is set. Set one with `holdfast config search.embedder default`.")
    for result in results:
        if not result.ok:
            output.print_line(f"{output.style('failed', 'red')} {result.name}: {result.problem}")
            output.print_line(f"    {output.style('fix:', 'dim')} {result.fix}")
            continue
        is_embedder = result.kind == "embedder"
        dimensions = f"{result.dimensions} dimensions, " if is_embedder else ""
        question = "a question" if is_embedder else "a question with 20 passages"
        output.print_line(
            f"{output.style('ok', 'green')} {output.style(result.name, 'bold')}: {dimensions}"
            f"{result.question_ms:g} ms {question}, {result.texts_per_second:,.0f} texts per second, "
            f"{format_bytes(result.memory_bytes)} memory, loaded in {result.load_ms:,.0f} ms; "
            f"{'similarity' if is_embedder else 'relevance'} of pairs {result.related:.2f} or more, "
            f"of others {result.unrelated:.2f} or less"
        )
