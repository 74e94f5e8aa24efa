"""placeholder"""


def reduce(frame, instr):
    raise NotImplementedError
