"""One module a format, one a plan. A plan's module has `parse` and, in TRACED and UNTRACED, the metrics it promises."""
