"""Scalars that record how they were computed: reverse-mode differentiation of plain Python floats.

Slow and simple on purpose. It shares nothing with tensorgrad, so that what it computes can be held
against it. Tensors are a shape and a flat list of numbers, row-major.
"""
import itertools
import math


class Number:
    __slots__ = ("value", "parents", "grad")

    def __init__(self, value, parents=()):
        self.value = value
        self.parents = parents  # (number, derivative with respect to it)
        self.grad = 0.0

    def __add__(self, other):
        other = number(other)
        return Number(self.value + other.value, ((self, 1.0), (other, 1.0)))

    def __sub__(self, other):
        other = number(other)
        return Number(self.value - other.value, ((self, 1.0), (other, -1.0)))

    def __mul__(self, other):
        other = number(other)
        return Number(self.value * other.value, ((self, other.value), (other, self.value)))

    def __truediv__(self, other):
        other = number(other)
        q = self.value / other.value
        return Number(q, ((self, 1 / other.value), (other, -q / other.value)))

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self):
        return Number(-self.value, ((self, -1.0),))


def number(x):
    return x if isinstance(x, Number) else Number(float(x))


def function(value, derivative):
    """An elementwise function from its value and its derivative."""
    return lambda x: Number(value(x.value), ((x, derivative(x.value)),))


def total(numbers):
    numbers = list(numbers)
    return Number(math.fsum(n.value for n in numbers), tuple((n, 1.0) for n in numbers))


def dot(a, b):
    pairs = list(zip(a, b))
    parents = tuple(p for x, y in pairs for p in ((x, y.value), (y, x.value)))
    return Number(math.fsum(x.value * y.value for x, y in pairs), parents)


def sigmoid_value(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _normal(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _normal_below(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _gelu_tanh(x):
    return 0.5 * x * (1 + math.tanh(_gelu_inner(x)))


def _gelu_inner(x):
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


def _gelu_tanh_slope(x):
    t = math.tanh(_gelu_inner(x))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)


exp = function(math.exp, math.exp)
log = function(math.log, lambda x: 1 / x)
sqrt = function(math.sqrt, lambda x: 0.5 / math.sqrt(x))
rsqrt = function(lambda x: 1 / math.sqrt(x), lambda x: -0.5 / (x * math.sqrt(x)))
UNARY = {
    "neg": lambda x: -x,
    "abs": function(abs, lambda x: (x > 0) - (x < 0)),
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "rsqrt": rsqrt,
    "sin": function(math.sin, math.cos),
    "cos": function(math.cos, lambda x: -math.sin(x)),
    "tanh": function(math.tanh, lambda x: 1 - math.tanh(x) ** 2),
    "sigmoid": function(sigmoid_value, lambda x: sigmoid_value(x) * sigmoid_value(-x)),
    "erf": function(math.erf, lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x)),
    "relu": function(lambda x: max(x, 0.0), lambda x: float(x > 0)),
    "gelu": function(lambda x: x * _normal_below(x), lambda x: _normal_below(x) + x * _normal(x)),
    "gelu_tanh": function(_gelu_tanh, _gelu_tanh_slope),
    "silu": function(lambda x: x * sigmoid_value(x),
                     lambda x: sigmoid_value(x) * (1 + x * sigmoid_value(-x))),
    "softplus": function(lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))), sigmoid_value),
    "square": function(lambda x: x * x, lambda x: 2 * x),
}


def backward(result, cotangents):
    """Adds the gradient of sum(result * cotangents) to all of its inputs."""
    order, seen = [], set()
    stack = [(n, False) for n in result]
    while stack:
        n, done = stack.pop()
        if done:
            order.append(n)
        elif id(n) not in seen:
            seen.add(id(n))
            stack.append((n, True))
            stack.extend((p, False) for p, _ in n.parents)
    for n, c in zip(result, cotangents):
        n.grad += c
    for n in reversed(order):
        if n.grad:
            for parent, derivative in n.parents:
                parent.grad += derivative * n.grad


class Tensor:
    def __init__(self, shape, items):
        self.shape, self.items = list(shape), list(items)
        assert len(self.items) == math.prod(self.shape), (shape, len(self.items))

    @staticmethod
    def build(shape, f):
        """f(index) for each index of the shape."""
        return Tensor(shape, [f(i) for i in indices(shape)])

    def __getitem__(self, index):
        at = 0
        for size, i in zip(self.shape, index):
            assert 0 <= i < size
            at = at * size + i
        return self.items[at]

    def map(self, f):
        return Tensor(self.shape, map(f, self.items))


def indices(shape):
    return itertools.product(*map(range, shape))


def broadcast_shape(*shapes):
    rank = max(map(len, shapes))
    padded = [[1] * (rank - len(s)) + list(s) for s in shapes]
    return [max(sizes) if min(sizes) > 0 else 0 for sizes in zip(*padded)]


def broadcast_index(shape, index):
    """Maps a broadcast index to an index into a tensor of that shape."""
    tail = index[len(index) - len(shape):]
    return [i if size > 1 else 0 for size, i in zip(shape, tail)]


def elementwise(f, *tensors):
    shape = broadcast_shape(*(t.shape for t in tensors))
    return Tensor.build(shape, lambda i: f(*(t[broadcast_index(t.shape, i)] for t in tensors)))
