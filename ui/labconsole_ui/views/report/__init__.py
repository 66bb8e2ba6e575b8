"""The report window: settings, preview of the pages, and the PDF."""
