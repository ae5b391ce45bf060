"""Tables and figures that an analysis of texts or outputs makes."""
