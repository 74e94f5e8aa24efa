"""From a graph to native code, and running it. `compiled.compile_graph` is the way in.

`link` finds the code in the cache or has `build` write it: `regions` (blocks, branches, loops, calls) and `plain`
(all other instructions) go over the graph with a `frame` for each function; `apply` hands each op to who knows how it
is computed: `launch` and `kernels` (loops over elements), `reduce`, `products`, `scatter`, `draws`, `views`.
What all programs share is in `native.support`. `compiled` runs it: `direct` on the main thread, or through `worker`.
"""
