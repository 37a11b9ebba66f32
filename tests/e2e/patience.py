"""How long a lab waits for what must come, as tests/support/common/patience.h says of tests in C."""
import os

FACTOR_MAX = 100


def _factor():
    text = os.environ.get("RINGSIDE_TEST_PATIENCE") or "1"
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= FACTOR_MAX:
        raise SystemExit(f'RINGSIDE_TEST_PATIENCE is "{text}": give a whole number from 1 to {FACTOR_MAX}')
    return int(text)


FACTOR = _factor()


def patient(limit_s):
    """The limit to wait for in the place of `limit_s`."""
    return limit_s * FACTOR
