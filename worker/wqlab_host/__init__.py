"""What the machine itself lends: its programs, and packages from its Debian mirror. Nothing is installed."""
