"""The adversary: random systems, every kind of answer, and an independent attempt to refute each one.

All checking mathematics is numpy and scipy; the tool under test is asked through `answers` alone. See `__main__`.
"""
