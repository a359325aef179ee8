"""The networks that GREAD is compared with, a file each; `gread.settings.model_records.models` has them by name."""
