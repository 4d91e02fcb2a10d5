"""Figures as PNG and SVG; the only folder that imports matplotlib."""
