"""Times as Kubernetes and HTTP write them."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def rfc3339(seconds: float) -> str:
    """Seconds since 1970 as an RFC 3339 time in UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def http_date(text: str) -> float | None:
    """Seconds since 1970 of the date of an HTTP answer; None where it has none, or one that is no date."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None


def duration(length: float) -> str:
    """A length of time in its two largest units, for example 5m12s or 3d4h."""
    left = max(0, int(length))
    days, left = divmod(left, 86400)
    hours, left = divmod(left, 3600)
    minutes, rest = divmod(left, 60)
    parts = [f"{n}{unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (rest, "s"))]
    first = next((i for i, n in enumerate((days, hours, minutes, rest)) if n), 3)
    return "".join(p for p in parts[first : first + 2] if not p.startswith("0")) or "0s"
