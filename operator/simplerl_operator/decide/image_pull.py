"""Why an image cannot be pulled. kubelet hands on containerd's whole chain of errors, in which each caller repeats the
image's name: its last part, from where something happened, is the cause."""

import re

_CALLERS = re.compile("|".join((
    r'Back-off pulling image ".*?": \w+: ',  # kubelet, which goes on with the error before
    r"rpc error: code = \w+ desc = ",
    r'failed to (?:pull|pull and unpack|resolve) (?:image|reference)(?: ".*?")?: ',
    r"failed to (?:do request|authorize|copy|fetch (?:anonymous|oauth) token): ",
    r"httpReadSeeker: failed open: ",
    r'(?:Head|Get|Post) ".*?": ',  # the registry's name is part of the image's
    r"dial tcp: ",  # where the lookup of the name failed
    r"""Failed to apply default image tag ".*?": couldn't parse image name ".*?": """,
)))  # fmt: skip
"""What callers put before the error that they pass on."""
_NEVER = re.compile(r'Container image ".*?" is not present with pull policy of Never')
_WAITS = re.compile(r'Back-off pulling image ".*?"')


def cause(said: str, image: str) -> str:
    """The cause in kubelet's message about an image, without the names of the image and of those who passed it on."""
    left = " ".join(said.split())
    if _NEVER.fullmatch(left):
        return "it is not on the node, and the pull policy is Never"
    if _WAITS.fullmatch(left):
        return "kubelet waits before it tries again"
    while (rest := _without_name(_CALLERS.sub("", left, count=1) if _CALLERS.match(left) else left, image)) != left:
        left = rest
    return left or said


def _without_name(said: str, image: str) -> str:
    """Without the image's name, also the full one (docker.io/library/…), where the message begins with it."""
    name, colon, rest = said.partition(": ")
    return rest if colon and (name == image or name.endswith(f"/{image}")) else said
