"""`make demo`: from nothing to a SimpleRLJob that Succeeded, in the embedded cluster or in the current context's."""
