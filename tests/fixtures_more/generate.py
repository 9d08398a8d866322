#!/usr/bin/env python3
"""Writes ops.json, ops.safetensors and train_*: reference values in the format of
tests/fixtures/README.md for the shapes and attributes that tests/fixtures leaves out.

    python3 tests/fixtures_more/generate.py        # a minute; writes beside itself

Needs nothing but Python. The values come from scalar.py, in double precision.
"""
import json
import math
import pathlib
import random
import struct

import models
from scalar import Number, Tensor, backward
from tensor_ops import OPS

HERE = pathlib.Path(__file__).parent
rng = random.Random(20261)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


# ---- files

def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, values) in sorted(tensors.items()):
        raw = struct.pack(f"<{len(values)}{'f' if dtype == 'f32' else 'i'}", *values)
        header[name] = {"dtype": dtype.upper(), "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


# ---- inputs: a shape means normally distributed values, unless `real`, `ints` or `given` is used

def real(*shape, low=None, high=None, scale=1.0):
    n = math.prod(shape)
    draw = (lambda: rng.uniform(low, high)) if low is not None else (lambda: rng.gauss(0, scale))
    return "f32", list(shape), [f32(draw()) for _ in range(n)]


def ints(*shape, below):
    return "i32", list(shape), [rng.randrange(below) for _ in range(math.prod(shape))]


def given(values, *shape, dtype="f32"):
    values = [f32(v) for v in values] if dtype == "f32" else list(values)
    return dtype, list(shape or [len(values)]), values


cases, tensors = [], {}


def case(name, op, inputs, attrs=None, grads=None):
    """`grads`: the inputs that have a gradient; by default all real ones."""
    attrs = attrs or {}
    inputs = {k: v if v and isinstance(v[0], str) else real(*v) for k, v in inputs.items()}
    values = {k: Tensor(s, map(Number, v) if d == "f32" else v) for k, (d, s, v) in inputs.items()}
    settings = {k: v for k, v in attrs.items() if v is not None}
    out = OPS[op](*values.values(), **settings)
    is_real = isinstance(out.items[0], Number)
    if grads is None:
        grads = [k for k, (d, _, _) in inputs.items() if d == "f32"] if is_real else []
    for k, v in inputs.items():
        tensors[f"{name}/in/{k}"] = v
    results = [f32(n.value) for n in out.items] if is_real else out.items
    dtype = "f32" if is_real else "i32"
    tensors[f"{name}/out"] = dtype, out.shape, results
    if grads:
        cot = real(*out.shape)
        tensors[f"{name}/cot"] = cot
        backward(out.items, cot[2])
        for k in grads:
            tensors[f"{name}/grad/{k}"] = "f32", inputs[k][1], [f32(n.grad) for n in values[k].items]
    cases.append({
        "case": name, "op": op, "attrs": attrs,
        "inputs": [{"name": k, "dtype": d, "shape": s} for k, (d, s, _) in inputs.items()],
        "output": {"dtype": dtype, "shape": out.shape}, "grads": grads})


def elementwise_cases():
    for op in ("add", "sub", "mul", "div", "maximum", "minimum"):
        far = {"low": 0.5, "high": 2} if op == "div" else {}
        case(f"{op}_both_sides", op, {"a": real(1, 3, 1, 5), "b": real(2, 1, 4, 1, **far)})
        case(f"{op}_scalars", op, {"a": real(), "b": real(**far)})
        if op in ("add", "div"):  # more than a block of the CPU's
            case(f"{op}_long", op, {"a": real(1027), "b": real(1, **far)})
        case(f"{op}_one_gradient", op, {"a": real(3, 4), "b": real(4, **far)}, grads=["a"])
    case("maximum_ties", "maximum", {"a": given([1, 2, 3, 0]), "b": given([1, 3, 2, 0])})
    case("minimum_ties", "minimum", {"a": given([1, 2, 3, 0]), "b": given([1])})
    case("add_integers", "add", {"a": ints(3, 4, below=9), "b": ints(4, below=9)})
    positive = {"low": 0.1, "high": 4}
    for op in ("neg abs exp log sqrt rsqrt sin cos tanh sigmoid erf relu gelu gelu_tanh silu softplus "
               "square leaky_relu").split():
        far = positive if op in ("log", "sqrt", "rsqrt") else {}
        case(f"{op}_scalar", op, {"x": real(**far)})
        case(f"{op}_rank5", op, {"x": real(2, 1, 3, 2, 5, **far)})
        case(f"{op}_long", op, {"x": real(1, 131, **far)})
    ends = [-100, -30, -20, -10, -5, -1e-3, 0, 1e-3, 5, 10, 20, 30, 80]
    for op in ("tanh", "sigmoid", "erf", "gelu", "gelu_tanh", "silu", "softplus", "relu", "abs"):
        case(f"{op}_ends", op, {"x": given(ends)})
    case("exp_ends", "exp", {"x": given([-90, -50, -1e-6, 0, 1e-6, 3, 10])})
    case("log_ends", "log", {"x": given([1e-3, 0.999, 1, 1.001, 1e3, 1e30])})
    case("sin_far", "sin", {"x": given([-1000, -100, 31.4159, 100, 1000])})
    case("cos_far", "cos", {"x": given([-1000, -100, 31.4159, 100, 1000])})
    case("leaky_relu_slope", "leaky_relu", {"x": (4, 6)}, {"slope": 0.2})
    case("clamp_bounds", "clamp", {"x": given([-2, -1, -0.5, 0, 1, 1.5])}, {"min": -1, "max": 1})
    case("clamp_min", "clamp", {"x": (3, 4)}, {"min": 0.25, "max": None})
    case("where_broadcast", "where", {"c": ints(4, 1, below=2), "a": (3, 1, 5), "b": ()})


def reduction_cases():
    for op in ("sum", "mean", "max"):
        case(f"{op}_pair", op, {"x": (2, 3, 4, 5)}, {"axis": [0, 2]})
        case(f"{op}_pair_kept", op, {"x": (2, 3, 4)}, {"axis": [-1, 0], "keepdims": True})
        case(f"{op}_list_of_one", op, {"x": (4, 6)}, {"axis": [1], "keepdims": False})
        case(f"{op}_default", op, {"x": (3, 5, 7)})
        case(f"{op}_all_kept", op, {"x": (3, 5)}, {"axis": None, "keepdims": True})
        case(f"{op}_long_rows", op, {"x": (2, 1100)}, {"axis": 1})
        case(f"{op}_long_columns", op, {"x": (300, 3)}, {"axis": 0})
        case(f"{op}_size_one", op, {"x": (3, 1)}, {"axis": 1})
        case(f"{op}_scalar", op, {"x": ()})
    case("max_ties", "max", {"x": given([1, 3, 3, 2, 2, 2, -1, -1], 2, 4)}, {"axis": 1})
    case("max_ties_all", "max", {"x": given([5, 1, 5, 5, 0, 5], 2, 3)})
    for op in ("argmax", "argmin"):
        case(f"{op}_ties", op, {"x": given([1, 3, 3, 2, 0, 0, 0, 0], 2, 4)}, {"axis": 1})
        case(f"{op}_middle", op, {"x": (3, 7, 2)}, {"axis": 1})
        case(f"{op}_rows", op, {"x": (4, 300)}, {"axis": -1})


def shape_cases():
    case("permute_rank5", "permute", {"x": (2, 3, 4, 1, 5)}, {"perm": [4, 0, 3, 2, 1]})
    case("permute_same", "permute", {"x": (2, 3)}, {"perm": [0, 1]})
    case("reshape_flat", "reshape", {"x": (2, 3, 4)}, {"shape": [-1]})
    case("reshape_scalar", "reshape", {"x": (1, 1)}, {"shape": []})
    case("reshape_from_scalar", "reshape", {"x": ()}, {"shape": [1, 1, 1]})
    case("broadcast_scalar", "broadcast_to", {"x": ()}, {"shape": [3, 2]})
    case("broadcast_same", "broadcast_to", {"x": (3, 2)}, {"shape": [3, 2]})
    case("broadcast_middle", "broadcast_to", {"x": (2, 1, 3)}, {"shape": [5, 2, 4, 3]})
    case("narrow_last", "narrow", {"x": (2, 9)}, {"axis": -1, "start": 8, "length": 1})
    case("narrow_all", "narrow", {"x": (3, 4)}, {"axis": 0, "start": 0, "length": 3})
    case("concat_negative", "concat", {k: (2, 3, n) for k, n in zip("abcde", (1, 4, 2, 1, 3))}, {"axis": -1})
    case("concat_first", "concat", {"a": (1, 5), "b": (6, 5)}, {"axis": 0})
    case("concat_one", "concat", {"a": (2, 3)}, {"axis": 1})
    case("stack_first", "stack", {k: (2, 3) for k in "abc"}, {"axis": 0})
    case("stack_last", "stack", {k: (2, 3) for k in "abcd"}, {"axis": -1})
    case("stack_scalars", "stack", {k: () for k in "abc"}, {"axis": 0})


def matmul_cases():
    for name, a, b in (("vectors", (7,), (7,)), ("matrix_vector", (4, 7), (7,)), ("vector_matrix", (7,), (7, 5)),
                       ("batch_vector", (2, 4, 7), (7,)), ("vector_batch", (7,), (3, 7, 2)),
                       ("row_column", (1, 9), (9, 1)), ("column_row", (9, 1), (1, 6)),
                       ("broadcast", (3, 1, 2, 4), (1, 2, 4, 5)), ("left_lacks", (2, 5), (3, 5, 4)),
                       ("edges", (33, 17), (17, 49)), ("tall", (130, 3), (3, 5)), ("wide", (2, 4), (4, 200)),
                       ("deep", (3, 700), (700, 2))):
        case(f"matmul_{name}", "matmul", {"input": a, "other": b})
    case("matmul_one_gradient", "matmul", {"input": (5, 6), "other": (6, 7)}, grads=["other"])


def index_cases():
    case("embedding_scalar", "embedding", {"table": (5, 3), "idx": ints(below=5)})
    case("embedding_rank3", "embedding", {"table": (9, 4), "idx": ints(2, 3, 4, below=9)})
    case("embedding_one_row", "embedding", {"table": (1, 6), "idx": given([0] * 10, dtype="i32")})
    case("embedding_many_repeats", "embedding", {"table": (3, 2), "idx": ints(200, below=3)})
    case("one_hot_scalar", "one_hot", {"idx": given([2], dtype="i32")}, {"depth": 3})
    case("one_hot_rank3", "one_hot", {"idx": ints(2, 2, 3, below=5)}, {"depth": 5})
    case("take_first_axis", "take_along_axis", {"x": (5, 3), "idx": ints(2, 3, below=5)}, {"axis": 0})
    case("take_last_axis", "take_along_axis", {"x": (2, 3, 6), "idx": ints(2, 3, 9, below=6)}, {"axis": -1})
    case("take_broadcast", "take_along_axis", {"x": (2, 3, 4), "idx": ints(1, 3, 2, below=4)}, {"axis": 2})


def learning_cases():
    for op in ("softmax", "log_softmax"):
        case(f"{op}_default", op, {"x": (3, 5)})
        case(f"{op}_first", op, {"x": (7, 3)}, {"axis": 0})
        case(f"{op}_size_one", op, {"x": (4, 1)}, {"axis": -1})
        case(f"{op}_vector", op, {"x": (600,)}, {"axis": 0})
        case(f"{op}_far", op, {"x": given([-500, 0, 500, 1, 2, 3, 80, 81, 79], 3, 3)}, {"axis": -1})
    case("softmax_causal_plain", "softmax_causal", {"x": (6, 6)})
    case("softmax_causal_one", "softmax_causal", {"x": (2, 1, 1)})
    hole = given([1, -100, 3, 0, -100, 2], 2, 3, dtype="i32")
    for reduction in ("mean", "sum", "none"):
        at = {"reduction": reduction}
        case(f"cross_entropy_ignore_{reduction}", "cross_entropy", {"logits": (2, 3, 5), "targets": hole},
             {**at, "ignore_index": -100})
        case(f"cross_entropy_smooth_{reduction}", "cross_entropy",
             {"logits": (4, 7), "targets": ints(4, below=7)}, {**at, "label_smoothing": 0.1})
        case(f"cross_entropy_both_{reduction}", "cross_entropy", {"logits": (2, 3, 5), "targets": hole},
             {**at, "ignore_index": -100, "label_smoothing": 0.25})
    case("cross_entropy_ignore_a_class", "cross_entropy",
         {"logits": (6, 4), "targets": given([0, 2, 1, 2, 3, 2], dtype="i32")}, {"ignore_index": 2})
    case("cross_entropy_default", "cross_entropy", {"logits": (3, 4), "targets": ints(3, below=4)})
    case("cross_entropy_vector", "cross_entropy", {"logits": (9,), "targets": ints(below=9)})
    case("cross_entropy_rank4", "cross_entropy", {"logits": (2, 2, 3, 4), "targets": ints(2, 2, 3, below=4)})
    case("cross_entropy_sure", "cross_entropy",
         {"logits": real(4, 5, scale=40), "targets": ints(4, below=5)}, {"reduction": "sum"})
    for eps in (None, 1e-3, 1e-6):
        at = {} if eps is None else {"eps": eps}
        eps = eps or "default"
        case(f"layer_norm_eps_{eps}", "layer_norm", {"x": (3, 2, 5), "gain": (5,), "bias": (5,)}, at)
        case(f"rms_norm_eps_{eps}", "rms_norm", {"x": (3, 2, 5), "gain": (5,)}, at)
    case("layer_norm_vector", "layer_norm", {"x": (33,), "gain": (33,), "bias": (33,)})
    case("layer_norm_far", "layer_norm", {"x": real(2, 40, low=10, high=11), "gain": (40,), "bias": (40,)})
    for name, H, G, T, S, D, causal in (("grouped", 4, 2, 5, 5, 4, True), ("one_group", 6, 1, 4, 4, 2, True),
                                        ("grouped_all", 4, 2, 3, 3, 4, False), ("longer_keys", 2, 2, 3, 7, 4, False),
                                        ("one_token", 2, 1, 1, 1, 4, True), ("odd_sizes", 1, 1, 19, 19, 3, True)):
        case(f"attention_{name}", "attention", {"q": (2, H, T, D), "k": (2, G, S, D), "v": (2, G, S, D)},
             {"causal": causal})
    case("rope_default", "rope", {"x": (3, 4)})
    case("rope_offset", "rope", {"x": (2, 5, 6)}, {"base": 500.0, "offset": 7})
    case("rope_pair", "rope", {"x": (1, 2, 9, 2)}, {"offset": 1000})


def image_cases():
    for name, x, w, bias, at in (
            ("stride_pair", (2, 2, 7, 6), (3, 2, 3, 2), True, {"stride": [2, 1]}),
            ("padding_pair", (1, 2, 5, 4), (2, 2, 3, 3), True, {"padding": [0, 2]}),
            ("dilation", (1, 2, 9, 8), (2, 2, 3, 3), True, {"dilation": 2}),
            ("dilation_pair", (1, 1, 7, 9), (2, 1, 2, 3), True, {"dilation": [1, 3], "padding": [1, 1]}),
            ("everything", (2, 4, 9, 7), (6, 2, 3, 2), True,
             {"stride": [2, 3], "padding": [2, 1], "dilation": [2, 1], "groups": 2}),
            ("pointwise", (2, 3, 4, 5), (4, 3, 1, 1), True, {"groups": 1}),
            ("depthwise_twice", (1, 3, 6, 6), (6, 1, 3, 3), True, {"groups": 3, "padding": 1}),
            ("whole_image", (2, 2, 3, 4), (3, 2, 3, 4), True, {}),
            ("no_bias", (1, 2, 5, 5), (2, 2, 3, 3), False, {"stride": 2}),
            ("skips_the_rest", (1, 1, 8, 8), (2, 1, 3, 3), True, {"stride": 4}),
            ("wide_stride", (1, 1, 9, 9), (1, 1, 2, 2), True, {"stride": 3})):
        inputs = {"x": x, "w": w}
        if bias:
            inputs["bias"] = (w[0],)
        case(f"conv2d_{name}", "conv2d", inputs, at)
    case("max_pool2d_pairs", "max_pool2d", {"x": (2, 2, 7, 8)}, {"kernel": [2, 3], "stride": [1, 2], "padding": [1, 1]})
    case("max_pool2d_default", "max_pool2d", {"x": (1, 3, 7, 6)}, {"kernel": 3})
    case("max_pool2d_overlap", "max_pool2d", {"x": (1, 2, 6, 6)}, {"kernel": 3, "stride": 1, "padding": 1})
    case("max_pool2d_one", "max_pool2d", {"x": (1, 2, 3, 3)}, {"kernel": 1})
    case("max_pool2d_ties", "max_pool2d", {"x": given([1, 1, 0, 2, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0], 1, 1, 4, 4)},
         {"kernel": 2})
    case("upsample_pair", "nearest_upsample2d", {"x": (2, 2, 3, 2)}, {"scale": [2, 3]})
    case("upsample_one", "nearest_upsample2d", {"x": (1, 1, 2, 2)}, {"scale": 1})


def main():
    for family in (elementwise_cases, reduction_cases, shape_cases, matmul_cases, index_cases, learning_cases,
                   image_cases):
        family()
    text = ",\n  ".join(json.dumps(c) for c in cases)
    (HERE / "ops.json").write_text(
        '{\n "reference": "scalar.py, double precision, stored as float32",\n "cases": [\n  ' + text + "\n ]\n}\n")
    write_safetensors(HERE / "ops.safetensors", tensors)
    for name, (description, data) in models.runs(real, ints, f32):
        (HERE / f"train_{name}.json").write_text(json.dumps(description, indent=1) + "\n")
        write_safetensors(HERE / f"train_{name}.safetensors", data)
    print(len(cases), "op cases")


if __name__ == "__main__":
    main()
