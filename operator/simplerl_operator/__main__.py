"""`python -m simplerl_operator`: the operator, configured by its environment (see settings.py)."""

import sys

from simplerl_operator import handlers, logs, settings


def main() -> None:
    try:
        given = settings.read()
    except settings.InvalidSettings as fault:
        sys.exit(str(fault))
    logs.configure(given.log_level)
    handlers.run(given)


if __name__ == "__main__":
    main()
