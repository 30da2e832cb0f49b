"""What events showed of pods that ended: a pod that is gone can no longer be asked how it ended."""

from collections.abc import Iterable, Set
from dataclasses import replace

from simplerl_operator.observe.job import Job, Key
from simplerl_operator.observe.pods import Pod


class Evidence:
    """The pods that were seen to end, by job, until their attempt is over."""

    def __init__(self) -> None:
        self._seen: dict[Key, dict[str, Pod]] = {}
        self._retired: dict[Key, set[str]] = {}

    def note(self, key: Key, pod: Pod, *, gone: bool) -> bool:
        """Takes note of a pod in an event, if it ends. Says whether it does."""
        if not (gone or pod.ended or pod.deleting or pod.terminations):
            return False
        if pod.passing and (pod.deleting or not pod.terminations):
            return False  # one that comes and goes, went
        seen = self._seen.setdefault(key, {})
        before = seen.get(pod.uid)
        if before is not None and before.terminations and not pod.terminations:
            pod = replace(pod, terminations=before.terminations)
        seen[pod.uid] = pod
        return True

    def lost(self, job: Job, there: set[str]) -> tuple[Pod, ...]:
        """Pods of the attempt that are no longer there; `there` holds the uids of those that are."""
        return tuple(
            pod
            for uid, pod in sorted(self._seen.get(job.key, {}).items(), key=lambda item: item[1].name)
            if uid not in there
            and uid not in self.retired(job.key)
            and pod.job_uid == job.uid
            and pod.attempt == job.cluster_attempt
        )

    def retire(self, key: Key, there: Iterable[str]) -> None:
        """Pods that Kueue took are no losses, whatever is still to be heard of them; `there` holds the uids of those
        that are still there."""
        self._retired.setdefault(key, set()).update(there, self._seen.pop(key, {}))

    def retired(self, key: Key) -> Set[str]:
        """Uids of the pods that Kueue took."""
        return self._retired.get(key, frozenset())

    def forget(self, key: Key) -> None:
        self._seen.pop(key, None)
        self._retired.pop(key, None)
