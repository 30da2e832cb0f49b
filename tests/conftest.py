"""Settings of all tests."""

from hypothesis import settings

# machines that run several suites at once are slow at times: a property is judged by its truth alone
settings.register_profile("simplerl", deadline=None)
settings.load_profile("simplerl")
