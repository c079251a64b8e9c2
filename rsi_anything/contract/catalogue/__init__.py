"""Every question the interview can ask, as data: one module for each part of the specification."""
