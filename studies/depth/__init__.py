"""Many layers: GREAD-ST against GRAND++, and linear reactions at any depth by the exact flow."""
