"""Small data sets, written as lines."""

from compgen.data.examples import Dataset


def dataset(*lines):
    return Dataset.from_pairs(tuple(side.split() for side in line.split(" -> ")) for line in lines)
