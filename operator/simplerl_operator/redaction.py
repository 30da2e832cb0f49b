"""Takes a job's token out of what its pods say, before anything is made of it: drivers redact what they know of, and a
traceback of Ray's own may hold what they do not."""

import base64

_REDACTED = "***"


def redact(text: str, token: str | None) -> str:
    """The text without the token, plain or as a Secret holds it."""
    if not token:
        return text
    encoded = base64.b64encode(token.encode()).decode()
    return text.replace(token, _REDACTED).replace(encoded, _REDACTED)
