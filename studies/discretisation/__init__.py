"""Is the thing computed still the equation?"""
