"""The report window: what a report shall say, its pages as they will be, and the PDF."""
