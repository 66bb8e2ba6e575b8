"""What needs a private key, each as an action in a process of its own: forms, questions, and the operation behind."""
