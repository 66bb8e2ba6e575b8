"""Reference pages in Markdown, made from the definitions: trials, operations, commands, formats, plugin interface."""
