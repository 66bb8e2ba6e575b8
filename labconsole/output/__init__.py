"""Files that leave the console: CSV, Parquet, JSON, bundles, charts (SVG), and reports (PDF)."""
