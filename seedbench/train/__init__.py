"""Training: one trainer, pure losses, methods as hooks."""
