"""What stored figures say: how they are written, and runs side by side."""
