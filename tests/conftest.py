"""Puts this folder on the path (`from contract.laws import LAWS`); failing laws show their values."""

import pytest

pytest.register_assert_rewrite("contract.laws", "contract.compare")
