"""From a graph to native code, and running it."""
