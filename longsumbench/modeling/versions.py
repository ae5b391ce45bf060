"""Version numbers of the steps that neural systems share; parts of run ids and of the keys of stages. No imports."""

FIT_VERSION = 2  # rises when the outcome of training changes
UNITS_VERSION = 2  # rises when rows of units change
QUERIES_VERSION = 1  # rises when units with queries change
TOKENIZER_VERSION = 1  # rises when byte-level BPE changes
WORDS_VERSION = 1  # rises when vocabularies of words change
