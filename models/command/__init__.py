"""Any program, or a function of Python, as a system."""
