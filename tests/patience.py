"""What tests do to wait: for a condition, never for time to pass."""
import os
import time

# For what must come: a sanitized build on a machine with other work to do may be a hundred times slower than a plain one
# that is alone, an emulated machine slower still (PINFOLD_PATIENCE: so many times). Whoever passes does not wait so long.
PATIENCE = 120 * int(os.environ.get("PINFOLD_PATIENCE", "1"))


def wait_for(what, seconds=PATIENCE, pause=0.02):
    """The first true value of what(), or the last one after the time is up."""
    end = time.monotonic() + seconds
    while True:
        v = what()
        if v or time.monotonic() > end:
            return v
        time.sleep(pause)
