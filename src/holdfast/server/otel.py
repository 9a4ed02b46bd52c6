"""OpenTelemetry traces, an extra (`holdfast[otel]`): imported only if the settings name a collector.

A request's span continues the trace that its `traceparent` header names. Verbs, waits for locks and for the database, and
outgoing calls are spans below it.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from holdfast import __version__
from holdfast.base import tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from starlette.datastructures import Headers

    from holdfast.config import Config
    from holdfast.server.logs import RequestRecord

T = TypeVar("T")
_TRACES_PATH = "/v1/traces"
_CLOSE_MILLISECONDS = 2000
_propagator = TraceContextTextMapPropagator()


class Tracing:
    """Record spans and send them to a collector."""

    def __init__(self, service: str, exporter: SpanExporter) -> None:
        self._provider = TracerProvider(resource=Resource.create({SERVICE_NAME: service, "service.version": __version__}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("holdfast", __version__)

    def span(self, name: str, attributes: dict[str, Any], is_client: bool) -> AbstractContextManager[Any]:
        """Return a span below the current one. Of an error only its type is recorded: a message may quote a text."""
        return self._record(name, attributes, SpanKind.CLIENT if is_client else SpanKind.INTERNAL)

    def bind(self, work: Callable[[], T]) -> Callable[[], T]:
        """Return `work` with the current span as its parent in another thread."""
        context = contextvars.copy_context()
        return lambda: context.run(work)

    @contextmanager
    def request(self, record: RequestRecord, headers: Headers) -> Iterator[None]:
        """Record one request, with what its record says at the end: route, status, agent, role and tenant, never a path."""
        parent = _propagator.extract({name: headers[name] for name in ("traceparent", "tracestate") if name in headers})
        attributes = {"http.request.method": record.method, "holdfast.request_id": record.id}
        with self._record(record.method, attributes, SpanKind.SERVER, parent) as span:
            try:
                yield
            finally:
                span.update_name(record.route or record.method)
                span.set_attribute("http.response.status_code", record.status)
                for name, value in _describe(record).items():
                    if value:
                        span.set_attribute(name, value)
                if record.status >= 500:
                    span.set_status(Status(StatusCode.ERROR))

    @contextmanager
    def _record(self, name: str, attributes: dict[str, Any], kind: SpanKind, parent: Any = None) -> Iterator[Any]:
        with self._tracer.start_as_current_span(
            name, parent, kind, attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except Exception as error:
                span.set_attribute("error.type", getattr(error, "code", type(error).__name__))
                span.set_status(Status(StatusCode.ERROR))
                raise

    def close(self) -> None:
        """Send what is recorded, and record no more."""
        tracing.install(None)
        self._provider.force_flush(_CLOSE_MILLISECONDS)
        self._provider.shutdown()


def start(settings: Config) -> Tracing:
    """Record spans from now on, and send them to the collector that the settings name."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    endpoint = (settings.otel_endpoint or "").rstrip("/")
    tracing_ = Tracing(settings.otel_service, OTLPSpanExporter(endpoint + _TRACES_PATH))
    tracing.install(tracing_)
    return tracing_


def _describe(record: RequestRecord) -> dict[str, str]:
    caller = record.caller
    return {
        "http.route": record.route.partition(" ")[2], "holdfast.outcome": record.outcome, "holdfast.tenant": record.tenant,
        "holdfast.agent": caller.agent if caller else "", "holdfast.role": caller.role if caller else "",
    }  # fmt: skip
