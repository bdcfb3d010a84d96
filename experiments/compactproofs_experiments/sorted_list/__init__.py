"""A public model that reads ten numbers and then says them in order: how many lists does it certainly answer right, at each output?

`lists` says what the task is, `reading` encloses the network at one output, `problem` makes tables for a query and a label, `kernels`
counts what may fail, and `prove` adds up. The theorem is in `README.md`.
"""
