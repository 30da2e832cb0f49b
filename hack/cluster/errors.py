"""What goes wrong for a reason that the user can act on."""


class ClusterError(Exception):
    """One sentence that names the thing, its value and what to do."""
