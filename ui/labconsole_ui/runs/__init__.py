"""Actions on runs: launch, notify, export, import, verify, drag and drop."""
