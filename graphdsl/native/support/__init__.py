"""What native code shares as it runs, in both modes: memory, stacks, and the threads among which large work is divided.

`functions` puts together what the others define, an object of its own: `buffers`, `stacks` (tapes), `team`, `rows` and
`parts` (threads, and what they take over from a call of the kernel library), `station` (work for the thread with a large
stack), `trail`. `library` has it from the cache, and `helpers` starts the threads. `words` says where all of it lies in memory.
"""
