"""Inspection of captures: a verdict for each packet, a station list, and a summary."""
