"""Charts: what is drawn, in values of its axes; laid out at a width and written as SVG."""
