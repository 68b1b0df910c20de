"""Drawing: Vega-Lite dicts in, SVG and PNG out, the same bytes on every machine."""
