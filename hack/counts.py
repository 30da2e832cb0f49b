"""counts.py FILE...: one closing line for several JUnit files: `N passed, N failed, N skipped`."""

import sys
from xml.etree import ElementTree


def main(paths: list[str]) -> None:
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for path in paths:
        for suite in ElementTree.parse(path).getroot().iter("testsuite"):
            for key in totals:
                totals[key] += int(suite.get(key, 0))
    bad = totals["failures"] + totals["errors"]
    print(f"{totals['tests'] - bad - totals['skipped']} passed, {bad} failed, {totals['skipped']} skipped")


if __name__ == "__main__":
    main(sys.argv[1:])
