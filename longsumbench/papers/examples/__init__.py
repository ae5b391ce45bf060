"""Tables and figures that show single examples: evidence, outputs, answered questions."""
