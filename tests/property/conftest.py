"""Hypothesis without wall clocks: a busy machine must not fail a property. HYPOTHESIS_EXAMPLES asks for more cases."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "polyplex",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "100")),
)
settings.load_profile("polyplex")
