"""The ops of the format, written over scalar.py by their definitions."""
import math

from scalar import (Number, Tensor, UNARY, broadcast_shape, broadcast_index, dot, elementwise, exp,
                    indices, log, number, rsqrt, total)


def pair(value):
    return list(value) if isinstance(value, (list, tuple)) else [value, value]


def choose(a, b, a_wins):
    """maximum and minimum: at a tie each side has half of the gradient."""
    if a.value == b.value:
        return Number(a.value, ((a, 0.5), (b, 0.5)))
    return Number(a.value, ((a, 1.0),)) if a_wins(a.value, b.value) else Number(b.value, ((b, 1.0),))


def largest(numbers):
    """Ties share the gradient."""
    top = max(n.value for n in numbers)
    winners = [n for n in numbers if n.value == top]
    return Number(top, tuple((n, 1 / len(winners)) for n in winners))


def first_largest(numbers):
    best = max(range(len(numbers)), key=lambda i: (numbers[i].value, -i))
    return numbers[best]


def reduce(f, x, axis=None, keepdims=False):
    rank = len(x.shape)
    axes = range(rank) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = {a % rank for a in axes}
    kept = [1 if a in axes else s for a, s in enumerate(x.shape)]
    reduced = [s if a in axes else 1 for a, s in enumerate(x.shape)]

    def at(i):
        return f([x[[p + q for p, q in zip(i, j)]] for j in indices(reduced)])
    out = Tensor.build(kept, at)
    return out if keepdims else Tensor([s for a, s in enumerate(x.shape) if a not in axes], out.items)


def position(x, axis, pick):
    return reduce(lambda ns: pick(range(len(ns)), key=lambda i: ns[i].value), x, axis)


def along(x, axis, f):
    """f(list) -> list along one axis."""
    axis %= len(x.shape)
    out = {}
    for i in indices([1 if a == axis else s for a, s in enumerate(x.shape)]):
        line = [i[:axis] + (k,) + i[axis + 1:] for k in range(x.shape[axis])]
        for index, value in zip(line, f([x[j] for j in line])):
            out[index] = value
    return Tensor.build(x.shape, lambda i: out[i])


def softmax_line(ns):
    top = max(n.value for n in ns)
    es = [exp(n - top) for n in ns]
    s = total(es)
    return [e / s for e in es]


def log_softmax_line(ns):
    top = max(n.value for n in ns)
    s = log(total(exp(n - top) for n in ns)) + top
    return [n - s for n in ns]


def softmax_causal(x):
    T = x.shape[-1]

    def rows(i):
        *lead, t, s = i
        if s > t:
            return Number(0.0)
        return softmax_line([x[lead + [t, k]] for k in range(t + 1)])[s]
    return Tensor.build(x.shape[:-2] + [T, T], rows)


def matmul(a, b):
    if len(a.shape) == 1:
        out = matmul(Tensor([1] + a.shape, a.items), b)
        return Tensor(out.shape[:-2] + out.shape[-1:] if len(b.shape) > 1 else [], out.items)
    if len(b.shape) == 1:
        out = matmul(a, Tensor(b.shape + [1], b.items))
        return Tensor(out.shape[:-1], out.items)
    lead = broadcast_shape(a.shape[:-2], b.shape[:-2])
    K = a.shape[-1]
    assert K == b.shape[-2]

    def at(i):
        *l, r, c = i
        la, lb = broadcast_index(a.shape[:-2], l), broadcast_index(b.shape[:-2], l)
        return dot([a[la + [r, k]] for k in range(K)], [b[lb + [k, c]] for k in range(K)])
    return Tensor.build(lead + [a.shape[-2], b.shape[-1]], at)


def cross_entropy(logits, targets, reduction="mean", ignore_index=None, label_smoothing=0.0):
    V = logits.shape[-1]
    logp = along(logits, -1, log_softmax_line)
    losses, counted = [], 0
    for i in indices(targets.shape):
        y = targets[i]
        if y == ignore_index:
            losses.append(Number(0.0))
            continue
        counted += 1
        line = [logp[list(i) + [v]] for v in range(V)]
        losses.append(-(line[y] * (1 - label_smoothing) + total(line) * (label_smoothing / V)))
    if reduction == "none":
        return Tensor(targets.shape, losses)
    s = total(losses)
    return Tensor([], [s / counted if reduction == "mean" else s])


def normalise(x, eps, centre):
    def line(ns):
        mean = total(ns) / len(ns) if centre else number(0)
        ns = [n - mean for n in ns]
        scale = rsqrt(dot(ns, ns) / len(ns) + eps)
        return [n * scale for n in ns]
    return along(x, -1, line)


def layer_norm(x, gain, bias, eps=1e-5):
    return elementwise(lambda n, g, b: n * g + b, normalise(x, eps, True), gain, bias)


def rms_norm(x, gain, eps=1e-5):
    return elementwise(lambda n, g: n * g, normalise(x, eps, False), gain)


def attention(q, k, v, causal=False):
    B, H, T, D = q.shape
    G, S = k.shape[1], k.shape[2]
    out = {}
    for b, h, t in indices([B, H, T]):
        g = h * G // H
        seen = range(t + 1 if causal else S)
        query = [q[b, h, t, d] for d in range(D)]
        w = softmax_line([dot(query, [k[b, g, s, d] for d in range(D)]) / math.sqrt(D) for s in seen])
        for e in range(v.shape[3]):
            out[b, h, t, e] = dot(w, [v[b, g, s, e] for s in seen])
    return Tensor.build([B, H, T, v.shape[3]], lambda i: out[i])


def rope(x, base=10000.0, offset=0):
    D = x.shape[-1]

    def at(i):
        *lead, t, d = i
        pair_index = d % (D // 2)
        angle = (offset + t) * base ** (-2 * pair_index / D)
        a, b = x[lead + [t, pair_index]], x[lead + [t, pair_index + D // 2]]
        if d < D // 2:
            return a * math.cos(angle) - b * math.sin(angle)
        return b * math.cos(angle) + a * math.sin(angle)
    return Tensor.build(x.shape, at)


def window(x, kernel, stride, padding, dilation=1):
    """For each output position the list of (kh, kw, h, w) inside the image."""
    (kH, kW), (sH, sW), (pH, pW), (dH, dW) = map(pair, (kernel, stride, padding, dilation))
    H, W = x.shape[2:]
    OH, OW = (H + 2 * pH - dH * (kH - 1) - 1) // sH + 1, (W + 2 * pW - dW * (kW - 1) - 1) // sW + 1

    def at(oh, ow):
        for kh, kw in indices([kH, kW]):
            h, w = oh * sH - pH + kh * dH, ow * sW - pW + kw * dW
            if 0 <= h < H and 0 <= w < W:
                yield kh, kw, h, w
    return OH, OW, at


def conv2d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    O, Cg = w.shape[:2]
    OH, OW, at = window(x, w.shape[2:], stride, padding, dilation)

    def value(i):
        b, o, oh, ow = i
        first = o // (O // groups) * Cg
        taps = [(w[o, c, kh, kw], x[b, first + c, h, v]) for c in range(Cg) for kh, kw, h, v in at(oh, ow)]
        out = dot([t[0] for t in taps], [t[1] for t in taps])
        return out + bias[[o]] if bias else out
    return Tensor.build([x.shape[0], O, OH, OW], value)


def max_pool2d(x, kernel, stride=None, padding=0):
    OH, OW, at = window(x, kernel, stride or kernel, padding)
    return Tensor.build(x.shape[:2] + [OH, OW], lambda i: first_largest(
        [x[i[0], i[1], h, w] for _, _, h, w in at(i[2], i[3])]))


def upsample(x, scale):
    sh, sw = pair(scale)
    B, C, H, W = x.shape
    return Tensor.build([B, C, H * sh, W * sw], lambda i: x[i[0], i[1], i[2] // sh, i[3] // sw])


def joined(parts, axis):
    axis %= len(parts[0].shape)
    shape = list(parts[0].shape)
    shape[axis] = sum(p.shape[axis] for p in parts)

    def at(i):
        i = list(i)
        for p in parts:
            if i[axis] < p.shape[axis]:
                return p[i]
            i[axis] -= p.shape[axis]
    return Tensor.build(shape, at)


def stacked(parts, axis):
    axis %= len(parts[0].shape) + 1
    shape = list(parts[0].shape)
    shape.insert(axis, 1)
    return joined([Tensor(shape, p.items) for p in parts], axis)


def reshape(x, shape):
    known = math.prod(s for s in shape if s != -1)
    return Tensor([len(x.items) // known if s == -1 else s for s in shape], x.items)


def permute(x, perm):
    def source(i):
        at = [0] * len(perm)
        for out_axis, axis in enumerate(perm):
            at[axis] = i[out_axis]
        return x[at]
    return Tensor.build([x.shape[p] for p in perm], source)


def narrow(x, axis, start, length):
    axis %= len(x.shape)
    shape = x.shape[:axis] + [length] + x.shape[axis + 1:]
    return Tensor.build(shape, lambda i: x[[k + start if a == axis else k for a, k in enumerate(i)]])


def take_along_axis(x, idx, axis):
    axis %= len(x.shape)
    free = lambda s: [1 if a == axis else n for a, n in enumerate(s)]
    shape = broadcast_shape(free(x.shape), free(idx.shape))
    shape[axis] = idx.shape[axis]

    def at(i):
        k = idx[[p if a == axis else min(p, idx.shape[a] - 1) for a, p in enumerate(i)]]
        return x[[k if a == axis else min(p, x.shape[a] - 1) for a, p in enumerate(i)]]
    return Tensor.build(shape, at)


def leaky_relu(x, slope=0.01):
    return x.map(lambda n: Number(n.value if n.value > 0 else slope * n.value,
                                  ((n, 1.0 if n.value > 0 else slope),)))


def clamp(x, min=-math.inf, max=math.inf):
    return x.map(lambda n: Number(sorted((min, n.value, max))[1], ((n, float(min <= n.value <= max)),)))


def one_hot(idx, depth):
    return Tensor.build(idx.shape + [depth], lambda i: Number(float(idx[i[:-1]] == i[-1])))


OPS = {
    "add": lambda a, b: elementwise(lambda p, q: p + q, a, b),
    "sub": lambda a, b: elementwise(lambda p, q: p - q, a, b),
    "mul": lambda a, b: elementwise(lambda p, q: p * q, a, b),
    "div": lambda a, b: elementwise(lambda p, q: p / q, a, b),
    "maximum": lambda a, b: elementwise(lambda p, q: choose(p, q, lambda v, w: v > w), a, b),
    "minimum": lambda a, b: elementwise(lambda p, q: choose(p, q, lambda v, w: v < w), a, b),
    **{name: (lambda f: lambda x: x.map(f))(f) for name, f in UNARY.items()},
    "leaky_relu": leaky_relu,
    "clamp": clamp,
    "where": lambda c, a, b: elementwise(lambda k, p, q: p if k else q, c, a, b),
    "sum": lambda x, **at: reduce(total, x, **at),
    "mean": lambda x, **at: reduce(lambda ns: total(ns) / len(ns), x, **at),
    "max": lambda x, **at: reduce(largest, x, **at),
    "argmax": lambda x, axis=None: position(x, axis, max),
    "argmin": lambda x, axis=None: position(x, axis, min),
    "permute": permute,
    "reshape": reshape,
    "broadcast_to": lambda x, shape: Tensor.build(shape, lambda i: x[broadcast_index(x.shape, i)]),
    "narrow": narrow,
    "concat": lambda *parts, axis=0: joined(parts, axis),
    "stack": lambda *parts, axis=0: stacked(parts, axis),
    "matmul": matmul,
    "embedding": lambda table, idx: Tensor.build(
        idx.shape + table.shape[1:], lambda i: table[idx[i[:-1]], i[-1]]),
    "one_hot": one_hot,
    "take_along_axis": take_along_axis,
    "softmax": lambda x, axis=-1: along(x, axis, softmax_line),
    "log_softmax": lambda x, axis=-1: along(x, axis, log_softmax_line),
    "softmax_causal": softmax_causal,
    "cross_entropy": cross_entropy,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "attention": attention,
    "rope": rope,
    "conv2d": conv2d,
    "max_pool2d": max_pool2d,
    "nearest_upsample2d": upsample,
}
