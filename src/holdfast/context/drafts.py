"""Drafts: the checks that every text passes before it is stored on a home or sent to a gateway."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.errors import Template, UsageError, field
from holdfast.formats.versions import Draft
from holdfast.models import key_of, tags_of
from holdfast.models import timestamp as format_time
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Tags, When
    from holdfast.models import Source


def make_draft(
    source: Source, text: object, key: str | None, *, note_bytes: int, type: str | None = None, tags: Tags = None,
    valid_from: When = None, valid_to: When = None, pinned: object = None, expected: str | None = None,
    redact: bool = False, allow_secret: str | None = None, amends: bool | None = None, before: str = "",
) -> Draft:  # fmt: skip
    """Return a text and what is said about it, checked; raise the error of the first rule that it breaks."""
    text, redacted = validate.redacted(validate.decoded(text)) if redact else (text, ())
    body = validate.text(text, note_bytes, before=before, allowed=allow_secret is not None)
    allowed = validate.wish(body, source.origin, allow_secret) if allow_secret is not None else None
    name = validate.key(key) if key is not None else key_of(allowed[1] if allowed else body)
    if key is not None:
        validate.no_secret(name, "a key", fix="Give it another name")
    start = dates.moment(valid_from, "valid_from") if valid_from is not None else None
    end = dates.moment(valid_to, "valid_to") if valid_to is not None else None
    if end and end <= (start or format_time(dates.clock())):
        fix = Template("A text is true from one day to a later one: say ", field("valid_from"), " too")
        what = Template(field("valid_to"), f" {end} is not after ", field("valid_from"), f" {start or 'now'}")
        raise UsageError(what, fix)
    checked_tags = validate.tags(tags_of(tags)) if tags is not None else None
    if not isinstance(pinned, bool | None):
        what = Template(field("pinned"), f" must be True or False, not {pinned!r}")
        raise UsageError(what, "Say one of them, or leave it out")
    return Draft(
        key=name, text=body, source=source, type=type, tags=checked_tags, valid_from=start, valid_to=end, pinned=pinned,
        expected=expected, amends=amends, redacted=redacted, allowed=allowed[0] if allowed else "",
        gated=allow_secret is None and not before,
    )  # fmt: skip
