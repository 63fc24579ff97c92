"""The whole sampler as one graph."""

from compgen.export.onnx_graphs import write_graphs
from tests.export.tiny import make


def test_names_within_the_loop_are_not_names_around_it(tmp_path):
    # Of this network the loop's body and what is around it were numbered so that they had a name in common (random
    # generator 1056 of seed 0).
    sizes = {"memories": 4, "hidden": 1, "encoder_hidden": 16, "embedding": 6, "attention": 13, "output": 6}
    flags = {"positions": 0, "tied": True, "copying": True, "mixing": "gate", "encoder_shared": True, "feed": False}
    network = make(**sizes, **flags, initial="zeros", latent=6, activation="linear").network.double()
    write_graphs(network, 0, tmp_path)  # which checks them
