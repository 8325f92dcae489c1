"""Where the work runs: processes of this machine, or an existing engine past it."""
