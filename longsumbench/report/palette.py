"""Colours and markers of all pictures."""

# The palette of Okabe and Ito, safe for colour blindness, without yellow, which is faint on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
GREY = "#767676"
