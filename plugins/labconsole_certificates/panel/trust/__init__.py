"""The State x State matrix in the window, and trust bundles."""
