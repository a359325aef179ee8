"""The networks that GREAD is compared with; `gread.settings.model_records.models` lists them by name."""
