"""Property tests of the model: no deadline, because other programs may have the machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "model", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("model")
