#!/usr/bin/env python3
"""PyTorch's side of bench/compare: training steps of the models that `tg bench` has, one JSON line for each model and mode.

A step is forward, backward, clipping at global norm 1 (not for mlp_sin) and AdamW (lr 1e-3, weight decay 0.01), in f32, on one
batch of random data that stays on the device. No result is read while steps are timed. ms_per_step is the median of 5 runs, best_ms the
best. gemm_N is one matmul of N x N matrices. Modes: eager, and compile (torch.compile of forward and loss).

With --turns, each line of the input names a mode and asks for one more timing; the answer is one line.
"""
import argparse
import json
import math
import re
import sys
import time

try:
    import torch
    from torch import nn
    import torch.nn.functional as F
except ImportError:
    if __name__ == "__main__":
        sys.exit("torch_peer: PyTorch is not installed\n  hint: pip install torch")
    raise

RUNS = 5
MOST_STEPS = 2000


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x, y):
        return F.mse_loss(self.layers(x), y)


class TransformerLayer(nn.Module):
    """Norms first; attention without biases, the perceptron with them."""

    def __init__(self, dim, heads, activation):
        super().__init__()
        self.heads, self.activation = heads, activation
        self.norm_attention, self.norm_mlp = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):  # [B, T, D]
        normed = self.norm_attention(x)
        q, k, v = (part(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(self.activation(self.up(self.norm_mlp(x))))


class MambaLayer(nn.Module):
    """Mamba-1 with the recurrence as a plain loop over time: what PyTorch can do without external kernels."""

    def __init__(self, dim, state, kernel=4, expand=2):
        super().__init__()
        inner = expand * dim
        self.state, self.rank, self.kernel = state, math.ceil(dim / 16), kernel
        self.norm = nn.RMSNorm(dim)
        self.into = nn.Linear(dim, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, kernel, groups=inner, padding=kernel - 1)
        self.select = nn.Linear(inner, self.rank + 2 * state, bias=False)
        self.step = nn.Linear(self.rank, inner)
        self.A_log = nn.Parameter(torch.arange(1.0, state + 1).log().expand(inner, state).clone())
        self.D = nn.Parameter(torch.ones(inner))
        self.out = nn.Linear(inner, dim, bias=False)

    def scan(self, u, delta, B, C):  # u and delta [B, L, E], B and C [B, L, N]
        decay = torch.exp(delta.unsqueeze(-1) * -torch.exp(self.A_log))  # [B, L, E, N]
        added = (delta * u).unsqueeze(-1) * B.unsqueeze(2)
        h = torch.zeros_like(added[:, 0])
        outputs = []
        for t in range(u.shape[1]):
            h = decay[:, t] * h + added[:, t]
            outputs.append((h * C[:, t].unsqueeze(1)).sum(-1))
        return torch.stack(outputs, 1) + self.D * u

    def forward(self, x):
        u, gate = self.into(self.norm(x)).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        step, B, C = self.select(u).split([self.rank, self.state, self.state], -1)
        return x + self.out(self.scan(u, F.softplus(self.step(step)), B, C) * F.silu(gate))


class LanguageModel(nn.Module):
    """Embeddings, layers, a norm, and a head tied to the embedding."""

    def __init__(self, vocab, dim, layers, norm, context=0):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.positions = nn.Parameter(0.02 * torch.randn(context, dim)) if context else None
        self.layers, self.norm = nn.Sequential(*layers), norm(dim)

    def forward(self, tokens, targets, mask):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions
        logits = F.linear(self.norm(self.layers(x)), self.tokens.weight)
        losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        return (losses * mask.flatten()).sum() / mask.sum()


class MeanOfSquares(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x).square().mean()


def transformer(vocab, dim, layers, heads, context, activation):
    blocks = [TransformerLayer(dim, heads, activation) for _ in range(layers)]
    return LanguageModel(vocab, dim, blocks, nn.LayerNorm, context)


def text_batch(vocab, T):
    def make(B, device):
        ids = torch.randint(vocab, (B, T + 1), device=device)
        return ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), torch.ones(B, T, device=device)
    return make


def numbers(B, device):
    return 6 * torch.rand(B, 1, device=device) - 3, torch.rand(B, 1, device=device)


# name: batch size, model, data
MODELS = {
    "mlp_sin": (256, Mlp, numbers),
    "addition": (128, lambda: transformer(12, 64, 3, 4, 8, F.relu), text_batch(12, 8)),
    "gpt_small": (32, lambda: transformer(65, 128, 4, 4, 128, F.gelu), text_batch(65, 128)),
    "gpt_char": (64, lambda: transformer(65, 384, 6, 6, 256, F.gelu), text_batch(65, 256)),
    "mamba_small": (16, lambda: LanguageModel(65, 128, [MambaLayer(128, 16) for _ in range(4)], nn.RMSNorm), text_batch(65, 128)),
    "mamba_block": (2, lambda: MeanOfSquares(MambaLayer(256, 64)), lambda B, device: (torch.randn(B, 256, 256, device=device),)),
}


def training_step(name, mode, batch, device):
    size, make_model, make_data = MODELS[name]
    torch.manual_seed(0)
    model, data = make_model().to(device), make_data(batch or size, device)
    loss = torch.compile(model) if mode == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, **({"fused": True} if device == "cuda" else {"foreach": True}))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(*data).backward()
        if name != "mlp_sin":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return step, batch or size


def product(N, device):
    torch.manual_seed(0)
    a, b, out = (torch.rand(N, N, device=device) for _ in range(3))
    return lambda: torch.mm(a, b, out=out)


def time_steps(step, count, device):
    start = time.perf_counter()
    for _ in range(count):
        step()
    if device == "cuda":
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - start) / count


class Case:
    """A model in a mode, compiled and warmed up."""

    def __init__(self, name, mode, args):
        self.name, self.mode, self.args = name, mode, args
        self.N = int(name[5:]) if name.startswith("gemm_") else 0
        if self.N:
            self.step, self.batch = product(self.N, args.device), 1
        else:
            self.step, self.batch = training_step(name, mode, args.batch, args.device)
        for _ in range(3):  # compile, choose kernels and fill caches
            self.time(1)
        budget = 1000 * args.seconds / RUNS
        once = self.time(max(1, min(100, int(budget / 4 / self.time(1)))))
        self.steps = max(1, min(MOST_STEPS, int(budget / once)))

    def time(self, count):
        return time_steps(self.step, count, self.args.device)

    def measure(self):
        times = sorted(self.time(self.steps) for _ in range(RUNS))
        line = {"peer": "torch " + torch.__version__, "model": self.name, "mode": self.mode, "device": self.args.device,
                "threads": torch.get_num_threads(), "batch": self.batch, "ms_per_step": round(times[RUNS // 2], 4),
                "best_ms": round(times[0], 4)}
        if self.N:
            line["gflops"] = round(2e-6 * self.N**3 / times[RUNS // 2], 2)
        return line


def line_of(cases, name, mode, args):
    """The times of a case. Sets it up and adds it to `cases`, unless it is there already."""
    try:
        if (name, mode) not in cases:
            cases[name, mode] = Case(name, mode, args)
        return cases[name, mode].measure()
    except Exception as error:  # torch.compile needs a compiler, and knows many ways to fail
        return {"model": name, "mode": mode, "error": f"{type(error).__name__}: {error}"[:300]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS) + ",gemm_512,gemm_1024,gemm_2048", help="default: %(default)s")
    parser.add_argument("--modes", default="eager,compile", help="default: %(default)s")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=0, help="of the CPU (default: PyTorch's own choice)")
    parser.add_argument("--batch", type=int, default=0, help="instead of each model's own")
    parser.add_argument("--seconds", type=float, default=2, help="of timing for each model and mode")
    parser.add_argument("--turns", action="store_true", help="time the model when a line of the input names a mode")
    args = parser.parse_args()
    names = args.models.split(",")
    for name in names:
        if name not in MODELS and not re.fullmatch(r"gemm_[1-9]\d*", name):
            sys.exit(f"torch_peer: there is no model '{name}'\n  hint: {', '.join(MODELS)}, gemm_1024")
    if args.turns and len(names) != 1:
        sys.exit("torch_peer: --turns needs one model")
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.turns:
        cases = {}
        for mode in sys.stdin:
            print(json.dumps(line_of(cases, names[0], mode.strip(), args)), flush=True)
        return
    for name in names:
        for mode in args.modes.split(","):
            if mode == "compile" and name.startswith("gemm_"):
                continue  # one call of a library either way
            print(json.dumps(line_of({}, name, mode, args)), flush=True)


if __name__ == "__main__":
    main()
