"""From one revision to another: requests on their way up, results and errors on their way down.

Where both sides speak the same era, bytes pass untouched.
"""
