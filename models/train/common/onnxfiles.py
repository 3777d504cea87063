"""Half-size ONNX files: float32 initialisers become float16 ones followed by a Cast, which runtimes fold while loading. Arithmetic, inputs
and outputs stay float32.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 14


def _large_constants_to_initialisers(graph, smallest):
    keep = []
    for node in graph.node:
        value = node.attribute[0].t if node.op_type == "Constant" and node.attribute[0].name == "value" else None
        if value is not None and value.data_type == TensorProto.FLOAT and np.prod(value.dims or [1]) > smallest:
            tensor = onnx.TensorProto()
            tensor.CopyFrom(value)
            tensor.name = node.output[0]
            graph.initializer.append(tensor)
        else:
            keep.append(node)
    del graph.node[:]
    graph.node.extend(keep)


def halved(model, smallest):
    """Tensors of fewer than `smallest` numbers stay as they are."""
    graph, casts, tensors = model.graph, [], []
    _large_constants_to_initialisers(graph, smallest)
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if tensor.data_type != TensorProto.FLOAT or values.size < smallest:
            tensors.append(tensor)
            continue
        tensors.append(numpy_helper.from_array(values.astype(np.float16), tensor.name + "_h"))
        casts.append(helper.make_node("Cast", [tensor.name + "_h"], [tensor.name], to=TensorProto.FLOAT))
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend(casts + nodes)
    del graph.initializer[:]
    graph.initializer.extend(tensors)
    onnx.checker.check_model(model)
    return model
