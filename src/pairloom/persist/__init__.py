"""Models in files without code, and checkpoints that survive a crash."""

from pairloom.persist.checkpoint import Checkpointer
from pairloom.persist.export import export_onnx
from pairloom.persist.format import ModelFileError
from pairloom.persist.model import load, save

__all__ = ["Checkpointer", "ModelFileError", "export_onnx", "load", "save"]
