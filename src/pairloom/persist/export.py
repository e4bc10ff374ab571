"""``export_onnx``: a model that predicts without Python."""

import os
from pathlib import Path
from typing import Any

import numpy as np

import pairloom
from pairloom.base.checks import check_choice
from pairloom.base.extras import import_extra
from pairloom.base.files import replacing
from pairloom.base.graph import ML, Graph, MLOpset, Node, OnHashed
from pairloom.base.saving import Savable

PLAIN, WITH_TREES = {"": 17, ML: 3}, {"": 21, ML: 5}
"""Versions of the operators, without and with TreeEnsemble."""

IR_VERSIONS = {17: 8, 21: 10}
"""The version of the file format for each version of the operators, so that runtimes of the same time read it."""

TYPES = {"f4": "FLOAT", "f8": "DOUBLE", "i8": "INT64", "u1": "UINT8", "b1": "BOOL", "U": "STRING"}


def export_onnx(
    model: Savable, path: str | os.PathLike[str], ml_opset: MLOpset = 5, on_hashed: OnHashed = "raise"
) -> None:
    """Write the predicting form of a fitted estimator as an ONNX model, for any runtime.

    The score of the model must be a linear function of a feature map, a forest, boosted trees, kernels at landmarks or
    at kept examples, or a mixture of these; otherwise ValueError, which names the part without an ONNX form.

    Named columns are inputs of shape (rows, 1) with their names: numbers, text for categories ("" is missing), days
    since 1970 in UTC for dates, in double. Rows without names are one input X (rows, columns). The outputs are
    ``label``, ``probabilities`` and ``score``, that of ``score_many``; for more than two classes without ``pos_label``
    that of ``decision_function``, and for real labels ``predict``. The input is not validated.

    ``ml_opset``: version of the operator for trees: 5, in float64, for onnxruntime 1.21 or newer; 3, in float32, for
    older runtimes. ``on_hashed``: "raise" if a column has categories that only a hash identifies, for which there is no
    operator; or export them as "unknown" categories, with a warning. The file is replaced in one step. MissingExtra
    without the package onnx.

    >>> import tempfile, onnx
    >>> from pairloom.systems import FPOGD
    >>> model = FPOGD(n_components=8, random_state=0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(model, f"{folder}/model.onnx")
    ...     [output.name for output in onnx.load(f"{folder}/model.onnx").graph.output]
    ['label', 'probabilities', 'score']
    """
    onnx = import_extra("onnx", "onnx", "export_onnx")
    if ml_opset not in (3, 5):
        raise ValueError(f"ml_opset must be 5, or 3 for onnxruntime before 1.21; got {ml_opset!r}")
    check_choice("on_hashed", on_hashed, OnHashed)
    if not isinstance(model, Savable):
        raise TypeError(f"export_onnx takes an estimator of pairloom; got a {type(model).__name__}")
    made = onnx_model(onnx, model._graph(ml_opset, on_hashed), type(model).__name__)
    with replacing(Path(path)) as file:
        file.write(made.SerializeToString())


def onnx_model(onnx: Any, graph: Graph, name: str) -> Any:
    """Return a graph as an ``onnx.ModelProto``, without nodes and constants that no output needs."""
    helper, versions = onnx.helper, WITH_TREES if graph.has_trees else PLAIN
    outputs = {own: value.name for own, (value, _) in graph.outputs.items()}
    nodes = needed(graph, set(outputs.values()))
    used = {source for node in nodes for source in node.inputs}
    made = [_node(onnx, node) for node in nodes]
    made += [helper.make_node("Identity", [source], [own]) for own, source in outputs.items()]
    types = {code: getattr(onnx.TensorProto, kind) for code, kind in TYPES.items()}
    info = helper.make_tensor_value_info
    built = helper.make_graph(
        made, name,
        [info(own, types[dtype], ["rows", width]) for own, (dtype, width) in graph.inputs.items()],
        [info(own, types[value.dtype], ["rows", n] if n else ["rows"]) for own, (value, n) in graph.outputs.items()],
        [onnx.numpy_helper.from_array(array, own) for own, array in graph.constants.items() if own in used],
    )  # fmt: skip
    imports = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    model = helper.make_model(
        built, opset_imports=imports, ir_version=IR_VERSIONS[versions[""]], producer_name="pairloom",
        producer_version=pairloom.__version__,
    )  # fmt: skip
    onnx.checker.check_model(model, full_check=True)
    return model


def needed(graph: Graph, names: set[str]) -> list[Node]:
    """Return the nodes that these values depend on, in order."""
    found, names = [], set(names)
    for node in reversed(graph.nodes):
        if node.output in names:
            names.update(node.inputs)
            found.append(node)
    return found[::-1]


def _node(onnx: Any, node: Node) -> Any:
    attributes = dict(node.attributes)
    if node.op == "Cast":
        attributes["to"] = getattr(onnx.TensorProto, TYPES[attributes["to"]])
    for name, value in attributes.items():
        if isinstance(value, np.ndarray):
            attributes[name] = onnx.numpy_helper.from_array(value, name)
    return onnx.helper.make_node(node.op, node.inputs, [node.output], domain=node.domain, **attributes)
