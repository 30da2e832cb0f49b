"""Models: the toy built on the spot, the supported families, folders on every node."""
