"""What some tests need and a machine may lack, as the summary of skipped tests names it."""

SHARED_FOLDER = "shared/, the folder of corpora and reference values beside the checkout"
CHROMIUM_PROGRAM = "Chromium (chromium, chromium-browser or google-chrome)"
WORDNET_LISTS = "WordNet's exception lists (apt-get install wordnet-base)"
