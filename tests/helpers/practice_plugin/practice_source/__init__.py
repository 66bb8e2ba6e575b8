"""What the practice plugin's source prints: data in a folder of the plugin's own."""
