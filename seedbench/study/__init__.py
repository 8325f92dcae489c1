"""Studies: many runs from one declarative file, planned, executed, watched and reported."""
