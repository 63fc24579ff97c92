"""Graphs hold all their numbers themselves, or no runtime ever sees them."""

from contextlib import suppress

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from compgen.errors import BundleError
from compgen.runtime.sealed import MESSAGES, SKIP, require_sealed
from tests.export.tiny import exported
from tests.runtime.attacks import CHANGES, ENCODINGS, attacked, field

STEP = (exported() / "step.onnx").read_bytes()


@pytest.mark.parametrize("name", [*CHANGES, *ENCODINGS])
def test_a_graph_that_reaches_out_is_refused(name):
    with pytest.raises(BundleError, match=r"^mine/step\.onnx: ") as caught:
        require_sealed("mine/step.onnx", attacked(STEP)[name])
    assert "\n" not in str(caught.value)


def test_messages_say_what_was_found():
    for name, found in (
        ("function", "functions"),
        ("training", "training information"),
        ("attribute", "external data"),
        ("sparse initializer", "sparse initializers"),
        ("compiled context", "the operator 'com.microsoft.EPContext'"),
    ):
        with pytest.raises(BundleError, match=f"holds {found}, which a bundle's graphs do not have"):
            require_sealed("step.onnx", attacked(STEP)[name])


@pytest.mark.parametrize("changes", [{}, {"initial": "encoder"}, {"latent": 5, "own": 9, "mixing": "gate"}], ids=str)
def test_our_own_graphs_are_sealed(changes):
    for path in exported(**changes).glob("*.onnx"):
        require_sealed(path.name, path.read_bytes())


def test_the_tables_are_those_of_onnx():
    """Every field that may come has the name in ONNX that the comments in the tables give, and none has other data."""
    types = {
        "model": onnx.ModelProto,
        "graph": onnx.GraphProto,
        "node": onnx.NodeProto,
        "attribute": onnx.AttributeProto,
        "tensor": onnx.TensorProto,
    }
    inside = {"GraphProto": "graph", "NodeProto": "node", "AttributeProto": "attribute", "TensorProto": "tensor"}
    inert = {"StringStringEntryProto", "OperatorSetIdProto", "ValueInfoProto", "Segment"}
    for name, fields in MESSAGES.items():
        described = types[name].DESCRIPTOR.fields_by_number
        for number, rule in fields.items():
            of = described[number].message_type
            if of is None or of.name in inert:
                assert rule == SKIP or rule in ("op_type", "domain", "data_location"), (name, number)
            else:
                assert rule == inside[of.name], (name, number)
    assert 13 not in MESSAGES["tensor"]  # external_data


def test_an_int8_product_is_the_one_operator_beyond_the_standard():
    def graph(domain, operator):
        node = helper.make_node(operator, ["a"], ["b"], domain=domain)
        return helper.make_model(helper.make_graph([node], "g", [], [])).SerializeToString()

    require_sealed("g", graph("com.microsoft", "MatMulIntegerToFloat"))
    require_sealed("g", graph("", "MatMul"))
    for domain, operator in (("com.microsoft", "MatMulNBits"), ("ours", "MatMulIntegerToFloat"), ("ai.onnx.ml", "x")):
        with pytest.raises(BundleError, match=f"the operator '{domain}.{operator}'"):
            require_sealed("g", graph(domain, operator))


def test_numbers_inside_are_no_external_data():
    tensor = TensorProto(name="x", data_type=TensorProto.FLOAT, dims=[1], float_data=[1.0])
    plain = tensor.SerializeToString()
    require_sealed("g", field(7, field(5, plain + b"\x70\x00")))  # data_location = DEFAULT, said
    with pytest.raises(BundleError, match="external data"):
        require_sealed("g", field(7, field(5, plain + b"\x70\x01")))


def test_graphs_within_graphs_end_somewhere():
    inner = b""
    for _ in range(200):
        inner = field(1, field(5, field(6, inner)))
    with pytest.raises(BundleError, match="messages more than 32 deep"):
        require_sealed("g", field(7, inner))


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_are_judged(data):
    with suppress(BundleError):
        require_sealed("g", data)
