"""Plots of measured series: pyqtgraph, reduced to what the screen can show."""
