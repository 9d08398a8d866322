#!/usr/bin/env python3
"""Writes torch_gpt2, torch_mamba and torch_mamba2: small models with random weights under the names and in
the layouts of PyTorch programs (Hugging Face's GPT-2, state-spaces' Mamba and Mamba-2), and their logits.

    python3 tests/fixtures_more/torch_models.py        # a second; writes beside itself

Needs nothing but Python. The logits come from the definitions of the models, one token and one number at
a time in double precision; weights are looked up as those programs hold them.
"""
import json
import math
import pathlib
import random
import struct

HERE = pathlib.Path(__file__).parent
VOCAB, DIM, LAYERS = 11, 8, 2
TOKENS = [[3, 1, 4, 1, 5, 9], [10, 2, 6, 0, 7, 8]]


class Weights:
    """Tensors by name: a shape and f32 values, row-major."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.tensors = {}

    def draw(self, name, *shape, mean=0.0, scale=0.4):
        self.put(name, shape, [mean + self.rng.gauss(0, scale) for _ in range(math.prod(shape))])

    def put(self, name, shape, values):
        n = len(values)
        self.tensors[name] = list(shape), list(struct.unpack(f"<{n}f", struct.pack(f"<{n}f", *values)))

    def vector(self, name):
        shape, values = self.tensors[name]
        assert len(shape) == 1
        return values

    def rows(self, name):
        """A matrix as a list of rows; ignores axes of size 1 in between."""
        shape, values = self.tensors[name]
        return [values[i * shape[-1]:(i + 1) * shape[-1]] for i in range(shape[0])]

    def save(self, name, logits):
        header, data = {}, b""
        for tensor, (shape, values) in sorted(self.tensors.items()):
            raw = struct.pack(f"<{len(values)}f", *values)
            header[tensor] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (HERE / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
        (HERE / f"{name}.json").write_text(json.dumps({"tokens": TOKENS, "logits": logits}) + "\n")


# ---- numbers

def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def add(a, b):
    return [x + y for x, y in zip(a, b, strict=True)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return math.log1p(math.exp(x))


def gelu_tanh(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


# ---- layers

def conv1d_gpt2(w, name, x):
    """The Conv1D of GPT-2: weight [in, out]."""
    weight, bias = w.rows(name + ".weight"), w.vector(name + ".bias")
    return [bias[o] + sum(x[i] * weight[i][o] for i in range(len(x))) for o in range(len(bias))]


def linear(w, name, x):
    """nn.Linear: weight [out, in]."""
    y = [dot(row, x) for row in w.rows(name + ".weight")]
    return add(y, w.vector(name + ".bias")) if name + ".bias" in w.tensors else y


def layer_norm(w, name, x, eps=1e-5):
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    gain, bias = w.vector(name + ".weight"), w.vector(name + ".bias")
    return [(v - mean) / math.sqrt(variance + eps) * g + b for v, g, b in zip(x, gain, bias, strict=True)]


def rms_norm(w, name, x, eps=1e-5):
    scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + eps)
    return [v * scale * g for v, g in zip(x, w.vector(name + ".weight"), strict=True)]


def causal_conv(w, name, xs):
    """nn.Conv1d with a group per channel, padded by K - 1 on both sides and cut to the length of the input."""
    kernel, bias = w.rows(name + ".weight"), w.vector(name + ".bias")
    K = len(kernel[0])
    padded = [[0.0] * len(bias)] * (K - 1) + xs
    return [[bias[c] + sum(kernel[c][k] * padded[t + k][c] for k in range(K)) for c in range(len(bias))]
            for t in range(len(xs))]


def head(w, x):
    return [dot(row, x) for row in w.rows("lm_head.weight")]


# ---- GPT-2

HEADS, CONTEXT = 2, 6


def gpt2_weights():
    w = Weights(1)
    w.draw("transformer.wte.weight", VOCAB, DIM)
    w.draw("transformer.wpe.weight", CONTEXT, DIM)
    for layer in range(LAYERS):
        h = f"transformer.h.{layer}."
        for norm in ("ln_1", "ln_2"):
            w.draw(h + norm + ".weight", DIM, mean=1)
            w.draw(h + norm + ".bias", DIM)
        for name, size_in, size_out in (("attn.c_attn", DIM, 3 * DIM), ("attn.c_proj", DIM, DIM),
                                        ("mlp.c_fc", DIM, 4 * DIM), ("mlp.c_proj", 4 * DIM, DIM)):
            w.draw(h + name + ".weight", size_in, size_out)
            w.draw(h + name + ".bias", size_out)
        # Buffers of older files: the causal mask and the value used for minus infinity.
        w.put(h + "attn.bias", (1, 1, CONTEXT, CONTEXT), [float(s <= t) for t in range(CONTEXT) for s in range(CONTEXT)])
        w.put(h + "attn.masked_bias", (), [-1e4])
    w.draw("transformer.ln_f.weight", DIM, mean=1)
    w.draw("transformer.ln_f.bias", DIM)
    w.tensors["lm_head.weight"] = w.tensors["transformer.wte.weight"]
    return w


def gpt2_attention(w, name, xs):
    size = DIM // HEADS
    qkv = [conv1d_gpt2(w, name + ".c_attn", x) for x in xs]
    out = []
    for t in range(len(xs)):
        merged = []
        for h in range(HEADS):
            def part(s, which):
                start = which * DIM + h * size
                return qkv[s][start:start + size]

            scores = [dot(part(t, 0), part(s, 1)) / math.sqrt(size) for s in range(t + 1)]
            exps = [math.exp(v - max(scores)) for v in scores]
            for i in range(size):
                merged.append(sum(e * part(s, 2)[i] for s, e in enumerate(exps)) / sum(exps))
        out.append(conv1d_gpt2(w, name + ".c_proj", merged))
    return out


def gpt2(w, tokens):
    wte, wpe = w.rows("transformer.wte.weight"), w.rows("transformer.wpe.weight")
    xs = [add(wte[token], wpe[t]) for t, token in enumerate(tokens)]
    for layer in range(LAYERS):
        h = f"transformer.h.{layer}"
        attended = gpt2_attention(w, h + ".attn", [layer_norm(w, h + ".ln_1", x) for x in xs])
        xs = [add(x, a) for x, a in zip(xs, attended, strict=True)]
        for t, x in enumerate(xs):
            hidden = [gelu_tanh(v) for v in conv1d_gpt2(w, h + ".mlp.c_fc", layer_norm(w, h + ".ln_2", x))]
            xs[t] = add(x, conv1d_gpt2(w, h + ".mlp.c_proj", hidden))
    return [head(w, layer_norm(w, "transformer.ln_f", x)) for x in xs]


# ---- Mamba and Mamba-2

INNER = 2 * DIM


def mamba_like_weights(seed, mixer):
    w = Weights(seed)
    w.draw("backbone.embedding.weight", VOCAB, DIM)
    for layer in range(LAYERS):
        w.draw(f"backbone.layers.{layer}.norm.weight", DIM, mean=1)
        mixer(w, f"backbone.layers.{layer}.mixer.")
    w.draw("backbone.norm_f.weight", DIM, mean=1)
    w.tensors["lm_head.weight"] = w.tensors["backbone.embedding.weight"]
    return w


def mamba_like(w, tokens, mixer):
    embedding = w.rows("backbone.embedding.weight")
    xs = [embedding[token] for token in tokens]
    for layer in range(LAYERS):
        block = f"backbone.layers.{layer}."
        mixed = mixer(w, block + "mixer.", [rms_norm(w, block + "norm", x) for x in xs])
        xs = [add(x, m) for x, m in zip(xs, mixed, strict=True)]
    return [head(w, rms_norm(w, "backbone.norm_f", x)) for x in xs]


STATE, RANK, TAPS = 4, 2, 3


def mamba_mixer_weights(w, m):
    w.draw(m + "in_proj.weight", 2 * INNER, DIM)
    w.draw(m + "conv1d.weight", INNER, 1, TAPS)
    w.draw(m + "conv1d.bias", INNER)
    w.draw(m + "x_proj.weight", RANK + 2 * STATE, INNER)
    w.draw(m + "dt_proj.weight", INNER, RANK)
    w.draw(m + "dt_proj.bias", INNER, mean=-1)
    w.put(m + "A_log", (INNER, STATE), [math.log(n + 1) + w.rng.gauss(0, 0.2) for _ in range(INNER) for n in range(STATE)])
    w.draw(m + "D", INNER, mean=1)
    w.draw(m + "out_proj.weight", DIM, INNER)


def mamba_mixer(w, m, inputs):
    xz = [linear(w, m + "in_proj", v) for v in inputs]
    z = [v[INNER:] for v in xz]
    x = [[silu(v) for v in row] for row in causal_conv(w, m + "conv1d", [v[:INNER] for v in xz])]
    A = [[-math.exp(a) for a in row] for row in w.rows(m + "A_log")]
    D = w.vector(m + "D")
    state = [[0.0] * STATE for _ in range(INNER)]
    out = []
    for t in range(len(inputs)):
        projected = linear(w, m + "x_proj", x[t])
        dt, B, C = projected[:RANK], projected[RANK:RANK + STATE], projected[RANK + STATE:]
        delta = [softplus(v) for v in linear(w, m + "dt_proj", dt)]
        y = []
        for e in range(INNER):
            state[e] = [math.exp(delta[e] * A[e][n]) * state[e][n] + delta[e] * B[n] * x[t][e] for n in range(STATE)]
            y.append((dot(C, state[e]) + D[e] * x[t][e]) * silu(z[t][e]))
        out.append(linear(w, m + "out_proj", y))
    return out


STATE2, HEAD_SIZE, TAPS2 = 5, 4, 4
HEADS2 = INNER // HEAD_SIZE


def mamba2_mixer_weights(w, m):
    w.draw(m + "in_proj.weight", 2 * INNER + 2 * STATE2 + HEADS2, DIM)
    w.draw(m + "conv1d.weight", INNER + 2 * STATE2, 1, TAPS2)
    w.draw(m + "conv1d.bias", INNER + 2 * STATE2)
    w.draw(m + "dt_bias", HEADS2, mean=-1)
    w.put(m + "A_log", (HEADS2,), [math.log(w.rng.uniform(1, 16)) for _ in range(HEADS2)])
    w.draw(m + "D", HEADS2, mean=1)
    w.draw(m + "norm.weight", INNER, mean=1)
    w.draw(m + "out_proj.weight", DIM, INNER)


def mamba2_mixer(w, m, inputs):
    projected = [linear(w, m + "in_proj", v) for v in inputs]
    z = [v[:INNER] for v in projected]
    channels = INNER + 2 * STATE2
    xBC = [[silu(v) for v in row]
           for row in causal_conv(w, m + "conv1d", [v[INNER:INNER + channels] for v in projected])]
    dt_bias, D = w.vector(m + "dt_bias"), w.vector(m + "D")
    A = [-math.exp(a) for a in w.vector(m + "A_log")]
    state = [[[0.0] * STATE2 for _ in range(HEAD_SIZE)] for _ in range(HEADS2)]
    out = []
    for t in range(len(inputs)):
        dt = [softplus(v) for v in add(projected[t][INNER + channels:], dt_bias)]
        x, B, C = xBC[t][:INNER], xBC[t][INNER:INNER + STATE2], xBC[t][INNER + STATE2:]
        y = []
        for h in range(HEADS2):
            for p in range(HEAD_SIZE):
                value = x[h * HEAD_SIZE + p]
                state[h][p] = [math.exp(dt[h] * A[h]) * s + dt[h] * b * value
                               for s, b in zip(state[h][p], B, strict=True)]
                y.append(dot(C, state[h][p]) + D[h] * value)
        gated = [v * silu(g) for v, g in zip(y, z[t], strict=True)]
        out.append(linear(w, m + "out_proj", rms_norm(w, m + "norm", gated)))
    return out


def main():
    w = gpt2_weights()
    w.save("torch_gpt2", [gpt2(w, row) for row in TOKENS])
    w = mamba_like_weights(2, mamba_mixer_weights)
    w.save("torch_mamba", [mamba_like(w, row, mamba_mixer) for row in TOKENS])
    w = mamba_like_weights(3, mamba2_mixer_weights)
    w.save("torch_mamba2", [mamba_like(w, row, mamba2_mixer) for row in TOKENS])


if __name__ == "__main__":
    main()
