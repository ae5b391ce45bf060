"""The built-in systems, one folder each. No system imports another.

A folder has a card (`README.md`), settings (`config.py`), a system (`system.py`) and a network (`model.py`). Start with
the card: it names the function of each equation, the choices and the deviations from the paper.
"""
