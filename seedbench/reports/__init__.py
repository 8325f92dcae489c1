"""Run folders -> tables. Import the builder you need; see :mod:`seedbench.reports.builders`."""
