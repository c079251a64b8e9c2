"""What runs as a box: the keeper outside its namespaces, the init within, and the way into them.

These modules import `os`, `sys`, `ctypes`, `marshal` and `select` alone and are run by an interpreter without site
packages: every box start pays for their imports, and `json`, `typing` or `signal` would cost more than all the rest.
"""
