"""Training runs: the models of the format over scalar.py, and Adam by its definition."""
import math

from scalar import Number, Tensor, UNARY, backward, elementwise, total
from tensor_ops import OPS


def linear(x, W, b=None):
    y = OPS["matmul"](x, W)
    return OPS["add"](y, b) if b else y


def mlp(model, p, x):
    layers = len(model["dims"]) - 1
    for i in range(1, layers + 1):
        x = linear(x, p[f"l{i}.W"], p[f"l{i}.b"])
        if i < layers:
            x = x.map(UNARY[model["activation"]])
    return x


def cnn(model, p, x):
    for i in range(1, len(model["channels"]) + 1):
        x = OPS["conv2d"](x, p[f"c{i}.W"], p[f"c{i}.b"], padding=model["padding"])
        x = OPS["max_pool2d"](x.map(UNARY[model["activation"]]), model["pool"])
    return linear(OPS["reshape"](x, [x.shape[0], -1]), p["fc.W"], p["fc.b"])


def transformer(model, p, tokens):
    (B, T), D, H, eps = tokens.shape, model["dim"], model["heads"], model["ln_eps"]
    norm = lambda x, name: OPS["layer_norm"](x, p[f"{name}.g"], p[f"{name}.b"], eps)
    heads = lambda x: OPS["permute"](OPS["reshape"](x, [B, T, H, D // H]), [0, 2, 1, 3])
    x = OPS["add"](OPS["embedding"](p["tok_emb"], tokens), OPS["narrow"](p["pos_emb"], 0, 0, T))
    for i in range(model["layers"]):
        at = f"layers.{i}"
        h = norm(x, f"{at}.ln1")
        q, k, v = (heads(linear(h, p[f"{at}.attn.{n}.W"])) for n in "qkv")
        a = OPS["permute"](OPS["attention"](q, k, v, causal=True), [0, 2, 1, 3])
        x = OPS["add"](x, linear(OPS["reshape"](a, [B, T, D]), p[f"{at}.attn.o.W"]))
        h = linear(norm(x, f"{at}.ln2"), p[f"{at}.mlp.up.W"], p[f"{at}.mlp.up.b"])
        h = h.map(UNARY[model["activation"]])
        x = OPS["add"](x, linear(h, p[f"{at}.mlp.down.W"], p[f"{at}.mlp.down.b"]))
    return linear(norm(x, "lnf"), OPS["permute"](p["tok_emb"], [1, 0]))


def mse(prediction, batch):
    return total(elementwise(lambda a, b: (a - b) * (a - b), prediction, batch["y"]).items) / len(prediction.items)


def cross_entropy(prediction, batch):
    return OPS["cross_entropy"](prediction, batch["y"]).items[0]


def masked_cross_entropy(prediction, batch):
    ce = OPS["cross_entropy"](prediction, batch["targets"], reduction="none")
    return total(OPS["mul"](ce, batch["mask"]).items) / total(batch["mask"].items)


def rate(lr, t):
    if lr["kind"] == "constant":
        return lr["value"]
    return lr["peak"] + (lr["final"] - lr["peak"]) * min(1, (t - 1) / lr["steps"])


def train(forward, loss_of, description, init, batches, f32):
    """The description with losses and norms, and the tensors of the run."""
    o = description["optimizer"]
    data = {f"init/{k}": v for k, v in init.items()}
    values = {k: list(v[2]) for k, v in init.items()}
    m = {k: [0.0] * len(v) for k, v in values.items()}
    v = {k: [0.0] * len(x) for k, x in values.items()}
    losses, norms = [], []
    store = lambda start, numbers: data.update(
        {f"{start}/{k}": ("f32", init[k][1], [f32(x) for x in n]) for k, n in numbers.items()})
    for step, batch in enumerate(batches):
        data.update({f"batch/{step}/{k}": b for k, b in batch.items()})
        p = {k: Tensor(init[k][1], map(Number, n)) for k, n in values.items()}
        given = {k: Tensor(s, map(Number, n) if d == "f32" else n) for k, (d, s, n) in batch.items()}
        source = given["tokens"] if "tokens" in given else given["x"]
        loss = loss_of(forward(description["model"], p, source), given)
        backward([loss], [1.0])
        losses.append(loss.value)
        grads = {k: [n.grad for n in t.items] for k, t in p.items()}
        if step == 0:
            store("grad1", grads)
        norm = math.sqrt(math.fsum(g * g for n in grads.values() for g in n))
        norms.append(norm)
        clip = o.get("clip_grad_norm")
        scale = min(1.0, clip / (norm + 1e-6)) if clip else 1.0
        t, lr = step + 1, rate(description["lr"], step + 1)
        for k, n in values.items():
            decays = o["kind"] == "adamw" and k in description["decay"]
            for i in range(len(n)):
                g = grads[k][i] * scale
                m[k][i] = o["beta1"] * m[k][i] + (1 - o["beta1"]) * g
                v[k][i] = o["beta2"] * v[k][i] + (1 - o["beta2"]) * g * g
                if decays:
                    n[i] -= lr * o["weight_decay"] * n[i]
                n[i] -= lr * (m[k][i] / (1 - o["beta1"]**t)) / (math.sqrt(v[k][i] / (1 - o["beta2"]**t)) + o["eps"])
    store("final", values)
    return {**description, "losses": losses, "grad_norms": norms, "steps": len(batches)}, data


def adam(**more):
    return {"kind": "adamw" if "weight_decay" in more else "adam", "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, **more}


def runs(real, ints, f32):
    # One layer, the smallest that the format allows.
    init = {"l1.W": real(3, 2), "l1.b": real(2)}
    yield "mlp_linear", train(mlp, mse, {
        "model": {"kind": "mlp", "dims": [3, 2], "activation": "relu"}, "loss": "mse", "optimizer": adam(),
        "lr": {"kind": "constant", "value": 0.01}, "decay": []},
        init, [{"x": real(5, 3), "y": real(5, 2)} for _ in range(4)], f32)

    dims = [2, 7, 6, 5, 3]
    init = {}
    for i in range(1, len(dims)):
        init[f"l{i}.W"] = real(dims[i - 1], dims[i], scale=0.5)
        init[f"l{i}.b"] = real(dims[i], scale=0.1)
    yield "mlp_tanh_adamw", train(mlp, mse, {
        "model": {"kind": "mlp", "dims": dims, "activation": "tanh"}, "loss": "mse",
        "optimizer": adam(beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.1, clip_grad_norm=0.2),
        "lr": {"kind": "linear", "peak": 0.02, "final": 0.001, "steps": 4}, "decay": ["l1.W", "l3.W", "l2.b"]},
        init, [{"x": real(6, 2), "y": real(6, 3)} for _ in range(8)], f32)

    init = {"c1.W": real(3, 2, 3, 3, scale=0.3), "c1.b": real(3, scale=0.1), "fc.W": real(3 * 2 * 2, 4, scale=0.3),
            "fc.b": real(4, scale=0.1)}
    yield "cnn_one_layer", train(cnn, cross_entropy, {
        "model": {"kind": "cnn", "image": [2, 7, 6], "channels": [3], "kernel": 3, "padding": 0, "pool": 2,
                  "classes": 4, "activation": "gelu"}, "batch": 3, "loss": "cross_entropy",
        "optimizer": adam(weight_decay=0.05), "lr": {"kind": "constant", "value": 0.005}, "decay": ["c1.W", "fc.W"]},
        init, [{"x": real(3, 2, 7, 6), "y": ints(3, below=4)} for _ in range(5)], f32)

    D, V, context = 8, 7, 6
    gain, bias = (lambda: real(D, low=0.5, high=1.5)), (lambda n=D: real(n, scale=0.1))
    matrix = lambda *shape: real(*shape, scale=0.3)
    init = {"tok_emb": matrix(V, D), "pos_emb": matrix(context, D),
            "layers.0.ln1.g": gain(), "layers.0.ln1.b": bias(),
            **{f"layers.0.attn.{n}.W": matrix(D, D) for n in "qkvo"},
            "layers.0.ln2.g": gain(), "layers.0.ln2.b": bias(),
            "layers.0.mlp.up.W": matrix(D, 4 * D), "layers.0.mlp.up.b": bias(4 * D),
            "layers.0.mlp.down.W": matrix(4 * D, D), "layers.0.mlp.down.b": bias(),
            "lnf.g": gain(), "lnf.b": bias()}
    mask = lambda: ("f32", [3, 4], [float(i % 4 > 0) for i in range(12)])
    # Batches shorter than the context: the last two rows of pos_emb have no gradient.
    yield "transformer_short", train(transformer, masked_cross_entropy, {
        "model": {"kind": "transformer", "vocab": V, "dim": D, "layers": 1, "heads": 2, "context": context,
                  "activation": "gelu", "ln_eps": 1e-3}, "batch": 3, "loss": "masked_cross_entropy",
        "optimizer": adam(weight_decay=0.02, clip_grad_norm=0.5),
        "lr": {"kind": "linear", "peak": 0.003, "final": 0.0, "steps": 3}, "decay": ["tok_emb", "layers.0.mlp.up.W"]},
        init, [{"tokens": ints(3, 4, below=V), "targets": ints(3, 4, below=V), "mask": mask()} for _ in range(4)], f32)
