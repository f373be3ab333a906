"""Changing the why: words cut out, what is left measured, the cut certified."""
