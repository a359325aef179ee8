"""Settings: `config` what is trained, `presets` as published, `trials` one training each."""
