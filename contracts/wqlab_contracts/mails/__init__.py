"""Read mails: parse them, build threads and series, inspect a series, and write it as b4 expects. Pure."""
