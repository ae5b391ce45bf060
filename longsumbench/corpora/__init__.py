"""The datasets. Each file defines one `Corpus`: its source, its licence, and how a row becomes an Example.

Start with `wiki_sections.py`; `reading` has what all of them share. A new dataset is a new file and a line in
`longsumbench/core/registry.py`; other packages add theirs through the entry-point group `longsumbench.corpora`.
"""
