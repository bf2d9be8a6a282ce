int tool(void) { return 0; }
