"""The built-in systems, one folder each. No system imports another.

A folder has a card (`README.md`), settings (`config.py`) and a system (`system.py`); a neural system also has a model
(`model.py`). `rankers` holds a learned ranker. Start with the card: it names the function of each equation, the choices
and the deviations from the paper.
"""
