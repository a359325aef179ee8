"""Settings: `config` of networks and training, published `presets`, `trials`."""
