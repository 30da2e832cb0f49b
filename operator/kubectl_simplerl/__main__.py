"""`python -m kubectl_simplerl`."""

from kubectl_simplerl.cli import main

if __name__ == "__main__":
    main()
