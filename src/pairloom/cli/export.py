"""`pairloom export`: write the predicting form of a model as ONNX."""

from functools import partial
from pathlib import Path

import typer

from pairloom.base.extras import import_extra
from pairloom.base.graph import MLOpset, OnHashed
from pairloom.cli.outputs import Outputs
from pairloom.data.readers.opening import FileError
from pairloom.persist import export_onnx, load


def run(path: Path, out: Path, ml_opset: MLOpset, on_hashed: OnHashed) -> None:
    """Write the file, and print its inputs and outputs."""
    onnx = import_extra("onnx", "onnx", "pairloom export")
    try:
        model = load(path)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    with Outputs() as outputs:
        outputs.add(out).save(partial(export_onnx, model, ml_opset=ml_opset, on_hashed=on_hashed))
        outputs.commit()
    graph = onnx.load(out, load_external_data=False).graph
    for title, values in (("inputs", graph.input), ("outputs", graph.output)):
        typer.echo(f"{title + ':':9}" + ", ".join(f"{one.name} ({_type(onnx, one)})" for one in values))
    typer.echo(f"wrote {out}, {out.stat().st_size / 1e6:.3g} MB")


def _type(onnx: object, value: object) -> str:
    """Return the type of an input or output, in lower case: float, double, string, ..."""
    code = value.type.tensor_type.elem_type  # type: ignore[attr-defined]
    name: str = onnx.TensorProto.DataType.Name(code)  # type: ignore[attr-defined]
    return name.lower()
