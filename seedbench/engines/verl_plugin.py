"""Registers SEED's loss when verl imports it: ``VERL_USE_EXTERNAL_MODULES=seedbench.engines.verl_plugin``.

``SEEDBENCH_BETA`` and ``SEEDBENCH_GATE`` set the gate (default 5 and ``sigmoid``, the paper's).
"""

import os

from seedbench.engines.verl import register

register(float(os.environ.get("SEEDBENCH_BETA", "5")), os.environ.get("SEEDBENCH_GATE", "sigmoid"))  # type: ignore[arg-type]
