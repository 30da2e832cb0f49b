"""What reward processes get from the driver's, and what of theirs is hidden: they run the code of users, and whatever
else a model's response makes of it, while the driver holds the tokens of hubs, trackers and services."""

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from simplerl_trainer.redaction import Redaction

_PASSED = frozenset(
    {
        # where things are, and how texts and times are written
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LANGUAGE", "TZ", "VIRTUAL_ENV",
        "LD_LIBRARY_PATH", "XDG_CACHE_HOME",
        # the way out
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        # caches of a hub, without its token
        "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "HF_ENDPOINT", "HF_HUB_OFFLINE",
    }
)  # fmt: skip
_PASSED_PREFIXES = ("LC_", "PYTHON")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run's reward processes have around them."""

    listed: Collection[str] = ()
    """Variables that the job itself names in cluster.env."""
    redaction: Redaction = field(default_factory=Redaction)
    """Hides secrets in what the processes print."""

    def environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        """The variables of a reward process, where `ours` are the driver's."""
        passed = {
            name: value
            for name, value in ours.items()
            if name in _PASSED or name.startswith(_PASSED_PREFIXES) or name in self.listed
        }
        return {
            **passed,
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "TOKENIZERS_PARALLELISM": "false",
            "OMP_NUM_THREADS": "1",
        }


PLAIN = Surroundings()
"""Of a job that names no variables and has no secrets."""
