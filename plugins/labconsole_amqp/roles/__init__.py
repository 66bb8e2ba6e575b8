"""The processes of a run: sender, receiver and broker roles. They import nothing from `trial`."""
