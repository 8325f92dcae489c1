"""Do the skills of a run deserve belief? Figures and numbers from its record and its checkpoint."""
